/* Parses many small JSON messages on several threads. The nodes of a message come from the arena of the thread and are
 * dropped all at once; messages are handed out through one counter, a batch at a time. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 512
#define BATCH 16
#define MAX_THREADS 4
#define ARENA_BYTES (64 * 1024)

enum type { J_NULL, J_NUMBER, J_STRING, J_ARRAY, J_OBJECT };

struct value {
    enum type type;
    uint32_t length;
    union {
        int64_t number;
        const char *text;
        struct value *first;
    } as;
    const char *name;
    struct value *next;
};

struct arena {
    _Alignas(64) char *memory;
    size_t used;
    size_t peak;
    size_t resets;
};

struct parser {
    const char *p;
    struct arena *arena;
};

struct job {
    pthread_t thread;
    struct arena *arena;
    int64_t sum;
    uint64_t values;
};

static char *messages[MESSAGES];
static unsigned long todo;
static struct {
    _Alignas(64) atomic_ulong next;
    char pad[56];
} queue;

static void *arena_take(struct arena *a, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (a->used + n > ARENA_BYTES) {
        fputs("arena is full\n", stderr);
        exit(1);
    }
    void *p = a->memory + a->used;
    a->used += n;
    return p;
}

static void arena_reset(struct arena *a)
{
    if (a->used > a->peak)
        a->peak = a->used;
    a->used = 0;
    a->resets++;
}

static void blanks(struct parser *s)
{
    while (*s->p == ' ' || *s->p == '\n')
        s->p++;
}

static const char *parse_text(struct parser *s, uint32_t *length)
{
    const char *begin = ++s->p;
    while (*s->p != '"')
        s->p++;
    *length = (uint32_t)(s->p++ - begin);
    return begin;
}

static struct value *parse_value(struct parser *s);

static void parse_members(struct parser *s, struct value *v, char close)
{
    struct value **to = &v->as.first;
    *to = NULL;
    s->p++;
    for (blanks(s); *s->p != close; blanks(s)) {
        const char *name = NULL;
        uint32_t ignored;
        if (close == '}') {
            name = parse_text(s, &ignored);
            blanks(s);
            s->p++; /* the colon */
        }
        struct value *m = parse_value(s);
        m->name = name;
        *to = m;
        to = &m->next;
        v->length++;
        blanks(s);
        if (*s->p == ',')
            s->p++;
    }
    s->p++;
}

static struct value *parse_value(struct parser *s)
{
    struct value *v = arena_take(s->arena, sizeof *v);
    memset(v, 0, sizeof *v);
    blanks(s);
    if (*s->p == '"') {
        v->type = J_STRING;
        v->as.text = parse_text(s, &v->length);
    } else if (*s->p == '[') {
        v->type = J_ARRAY;
        parse_members(s, v, ']');
    } else if (*s->p == '{') {
        v->type = J_OBJECT;
        parse_members(s, v, '}');
    } else if (*s->p == 'n') {
        v->type = J_NULL;
        s->p += 4;
    } else {
        int negative = *s->p == '-';
        v->type = J_NUMBER;
        for (s->p += negative; *s->p >= '0' && *s->p <= '9'; s->p++)
            v->as.number = v->as.number * 10 + (*s->p - '0');
        if (negative)
            v->as.number = -v->as.number;
    }
    return v;
}

static int64_t total(const struct value *v, uint64_t *values)
{
    int64_t sum = 0;
    ++*values;
    if (v->type == J_NUMBER)
        sum = v->as.number;
    else if (v->type == J_STRING)
        sum = v->length;
    else if (v->type == J_ARRAY || v->type == J_OBJECT)
        for (const struct value *m = v->as.first; m; m = m->next)
            sum += total(m, values) * (m->name && m->name[0] == 'k' ? 2 : 1);
    return sum;
}

static void *parse_messages(void *arg)
{
    struct job *j = arg;
    int64_t sum = 0;
    uint64_t values = 0;
    for (;;) {
        unsigned long from = atomic_fetch_add(&queue.next, BATCH);
        if (from >= todo)
            break;
        for (unsigned long i = from; i < from + BATCH && i < todo; i++) {
            struct parser s = {messages[i % MESSAGES], j->arena};
            sum += total(parse_value(&s), &values);
            arena_reset(j->arena);
        }
    }
    j->sum = sum;
    j->values = values;
    return NULL;
}

static void write_messages(void)
{
    uint32_t x = 1;
    for (int i = 0; i < MESSAGES; i++) {
        char text[1024];
        int n = snprintf(text, sizeof text, "{\"id\": %d, \"user\": \"u%d\", \"tags\": [", i, i * 7 % 100);
        for (int k = 0; k < 3 + i % 5; k++) {
            x = x * 1664525u + 1013904223u;
            n += snprintf(text + n, sizeof text - (size_t)n, "%s\"t%u\"", k ? ", " : "", x >> 25);
        }
        n += snprintf(text + n, sizeof text - (size_t)n, "], \"k\": {\"x\": %u, \"y\": -%u, \"z\": null}, \"rows\": [", x >> 20,
                      x >> 22);
        for (int k = 0; k < 4 + i % 7; k++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s[%d, %d]", k ? "," : "", k * i, k - i);
        snprintf(text + n, sizeof text - (size_t)n, "]}\n");
        messages[i] = strdup(text);
    }
}

int main(int argc, char **argv)
{
    todo = argc > 1 ? strtoul(argv[1], NULL, 10) : 60000;
    int threads = argc > 2 ? atoi(argv[2]) : 3;
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    write_messages();
    struct arena *arenas = aligned_alloc(64, MAX_THREADS * sizeof *arenas);
    if (!arenas)
        return 1;
    struct job jobs[MAX_THREADS];
    for (int i = 0; i < threads; i++) {
        arenas[i] = (struct arena){.memory = aligned_alloc(64, ARENA_BYTES)};
        jobs[i] = (struct job){.arena = &arenas[i]};
        if (!arenas[i].memory || pthread_create(&jobs[i].thread, NULL, parse_messages, &jobs[i]))
            return 1;
    }
    int64_t sum = 0;
    uint64_t values = 0;
    size_t peak = 0, resets = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(jobs[i].thread, NULL);
        sum += jobs[i].sum;
        values += jobs[i].values;
        resets += arenas[i].resets;
        peak = arenas[i].peak > peak ? arenas[i].peak : peak;
        free(arenas[i].memory);
    }
    printf("%zu messages, %llu values, sum %lld\n", resets, (unsigned long long)values, (long long)sum);
    for (int i = 0; i < MESSAGES; i++)
        free(messages[i]);
    free(arenas);
    return peak > ARENA_BYTES;
}
