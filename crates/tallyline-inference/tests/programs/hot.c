/* Where the time of a C program goes: each line says which fields it touches. With an argument it runs
 * that many rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list { struct list *next, *prev; };
struct counters { unsigned long hits, misses, bytes; };
struct order {
    struct order *next;
    char name[48];
    int flags, quantity;
    double price;
    struct list link;
    unsigned char state[16];
};
struct entry { struct entry *chain; unsigned long key; struct order *order; unsigned int used; };
struct table { struct entry **buckets; unsigned long mask; struct counters seen; };
struct node { struct node *left, *right; long key; long weight; };
struct message { unsigned int kind, length; union { struct { long from, to; } transfer; double rate[2]; } body; };
struct queue { unsigned long head, tail; struct message *slots; unsigned long mask; };
struct account { long balance; unsigned int transfers, refused; char owner[40]; };
struct operations { long (*apply)(struct account *, const struct message *); };

static struct counters per_kind[4];
static struct account accounts[4096];
static __thread struct counters own;

__attribute__((noinline)) static struct entry *lookup(struct table *t, unsigned long key)
{
    struct entry *e = t->buckets[key & t->mask];    /* table.buckets table.mask entry*. */
    for (; e; e = e->chain)                         /* entry.chain */
        if (e->key == key) {                        /* entry.key */
            e->used++;                              /* entry.used */
            t->seen.hits++;                         /* table.seen.hits */
            return e;
        }
    t->seen.misses++;                               /* table.seen.misses */
    return NULL;
}

__attribute__((noinline)) static long walk(struct order *o)
{
    long sum = 0;
    for (; o; o = o->next) {                        /* order.next */
        if (o->flags & 1)                           /* order.flags */
            sum += o->quantity;                     /* order.quantity */
        o->price *= 1.0001;                         /* order.price */
    }
    return sum;
}

#define order_of(l) ((struct order *)((char *)(l) - __builtin_offsetof(struct order, link)))

__attribute__((noinline)) static long linked(struct list *head)
{
    long sum = 0;
    for (struct list *l = head->next; l != head; l = l->next)   /* list.next order.link.next */
        sum += order_of(l)->state[3];               /* order.state[] */
    return sum;
}

__attribute__((noinline)) static long find(const struct node *n, long key)
{
    while (n && n->key != key)                      /* node.key */
        n = key < n->key ? n->left : n->right;      /* node.left node.right node.key */
    return n ? n->weight : 0;                       /* node.weight */
}

static long transfer(struct account *a, const struct message *m)
{
    struct account *to = &a[m->body.transfer.to & 4095];    /* message.body message.body.transfer.to message.body.rate[] */
    if (to->balance < 0) {                          /* account.balance */
        to->refused++;                              /* account.refused account.transfers */
        return 0;
    }
    to->balance += m->length;                       /* account.balance message.length message.kind */
    to->transfers++;                                /* account.transfers */
    return to->balance;
}

static long count(struct account *a, const struct message *m)
{
    (void)a;
    own.bytes += m->length;                         /* counters.bytes message.length message.kind */
    own.hits++;                                     /* counters.hits */
    return own.misses;                              /* counters.misses */
}

static const struct operations operations[2] = { { transfer }, { count } };

__attribute__((noinline)) static long drain(struct queue *q)
{
    long sum = 0;
    while (q->head != q->tail) {                    /* queue.head queue.tail */
        const struct message *m = &q->slots[q->head & q->mask]; /* queue.slots queue.mask queue.head */
        sum += operations[m->kind & 1].apply(accounts, m);      /* message.kind operations.apply operations[2].[].apply */
        per_kind[m->kind & 3].bytes += m->length;   /* message.kind message.length counters[4].[].bytes counters.bytes */
        q->head++;                                  /* queue.head */
    }
    return sum;
}

__attribute__((noinline)) static long settle(struct account *all, int n)
{
    long sum = 0;
    for (int i = 0; i < n; i++) {
        if (all[i].balance > 1000000)               /* account.balance */
            all[i].balance = 0;                     /* account.balance */
        sum += all[i].owner[i & 31];                /* account.owner[] */
    }
    return sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    enum { n = 20000 };
    struct order *orders = calloc(n, sizeof *orders);
    struct entry *entries = calloc(n, sizeof *entries);
    struct node *nodes = calloc(n, sizeof *nodes), *root = NULL;
    struct table t = { calloc(8192, sizeof(struct entry *)), 8191, { 0, 0, 0 } };
    struct queue q = { 0, 0, calloc(1024, sizeof(struct message)), 1023 };
    struct list head = { &head, &head };
    if (!orders || !entries || !nodes || !t.buckets || !q.slots)
        return 1;
    for (int i = 0; i < n; i++) {
        int at = (int)(i * 7919L % n);
        struct order *o = &orders[at];
        struct entry *e = &entries[at];
        o->next = i ? &orders[(i - 1) * 7919L % n] : NULL;
        o->flags = i;
        o->quantity = i & 15;
        o->price = 1;
        o->link = (struct list){ head.next, &head };
        head.next = &o->link;
        *e = (struct entry){ t.buckets[i & t.mask], (unsigned long)i, o, 0 };
        t.buckets[i & t.mask] = e;
        struct node **place = &root;
        nodes[i].key = at;
        while (*place)
            place = at < (*place)->key ? &(*place)->left : &(*place)->right;
        *place = &nodes[i];
    }
    long sum = 0;
    struct order *last = &orders[(n - 1) * 7919L % n];
    for (int r = 0; r < rounds; r++) {
        sum += walk(last) + linked(&head) + settle(accounts, 4096);
        for (int i = 0; i < n; i++)
            sum += lookup(&t, (unsigned long)(i * 31L % (n + 100))) != NULL;
        for (int i = 0; i < 2000; i++)
            sum += find(root, i * 17 % n);
        for (int b = 0; b < 16; b++) {
            for (; q.tail - q.head < 1024; q.tail++)
                q.slots[q.tail & q.mask] = (struct message){ q.tail & 3, 7, { { 1, (long)q.tail * 13 } } };
            sum += drain(&q);
        }
    }
    printf("%ld %lu\n", sum, t.seen.hits);
    return 0;
}
