// Variables of threads, in every way that programs reach them. A line names the fields that it touches, or `-` for what
// can be of several types; a function's end is on its last line, as gcc has parts of the result at the end's line.
#include <stdio.h>

struct stats { unsigned long hits, misses; int kind; unsigned long of_size[16]; };
struct slot { unsigned int key, used; struct stats *of; };
struct arena { char *next, *end; struct slot slots[8]; };

static __thread int seed = 7;
static __thread struct stats own;
static __thread struct slot table[64];
__thread struct arena shared = {0, 0, {{1, 2, 0}}};
static __thread struct stats *current;
static __thread char padding[100] __attribute__((aligned(64)));

#define APART __attribute__((noinline, noclone))

APART int scalar(void)
{
    seed = seed * 5 + 1;                    // int.
    return seed & 7;
}

APART void fields(unsigned long size)
{
    own.hits++;                             // stats.hits
    if (size > 100)
        own.misses += size;                 // stats.misses
    own.kind = 3;                           // stats.kind
}

APART void element(unsigned long size)
{
    own.of_size[size & 15]++;               // stats.of_size[]
}

APART unsigned int of_table(unsigned long number)
{
    struct slot *at = &table[number & 63];
    return at->used++ + at->key; }          // slot.used slot.key slot[64].[].used slot[64].[].key

APART unsigned int all_of_table(void)
{
    unsigned int sum = 0;
    for (struct slot *at = table; at != table + 64; at++)
        sum += at->used;                    // slot.used slot[64].[].used
    return sum;
}

APART unsigned int nested(unsigned long number)
{
    shared.next++;                          // arena.next
    return shared.slots[number & 7].key; }  // arena.slots[].key

APART unsigned long through(void)
{
    return current->misses++ + current->hits; } // stats.misses stats.hits

APART unsigned long by_number(unsigned long number)
{
    return table[number & 63].of->kind; }   // slot[64].[].of stats.kind

APART unsigned long of_either(int which)
{
    struct slot *at = which ? &table[1] : &table[which & 6];
    return at->key; }                       // slot.key slot[64].[].key

APART unsigned long of_other(int which)
{
    void *at = which ? (void *)&own : (void *)&shared.end;
    __asm__("" : "+r"(at));
    return *(unsigned long *)at; }          // -

APART int letter(unsigned long number)
{
    return padding[number & 63]++; }        // char[100].[]

APART unsigned long inside(void)
{
    static __thread struct slot last;
    return last.used++ + last.key; }        // slot.used slot.key

APART void by_address(struct stats **to, int which)
{
    struct stats *all = which ? &own : current;
    all->kind++;                            // stats.kind
    *to = &own;
}

int main(int count, char **arguments)
{
    struct stats *to;
    (void)arguments;
    current = &own;
    for (int i = 0; i < 64; i++)
        table[i].of = &own;                 // slot[64].[].of slot.of
    for (int i = 0; i < 100 * count; i++) {
        fields(i);
        element(i);
        by_address(&to, i & 1);
        if (scalar() + of_table(i) + all_of_table() + nested(i) + through() + inside() + of_either(i & 1) == 0)
            puts("none");
        if (letter(i) + of_other(i & 1) + by_number(i) + to->hits == 0)
            puts("none");
    }
    return padding[7] == 100;
}
