#include <stdio.h>
#include <stdlib.h>

struct list { struct list *next, *prev; };
struct stats { long n; double sum; };
struct order {
    struct order *next;
    char name[48];
    int flags;
    int quantity;
    double price;
    struct list link;
    struct stats per[4];
    union { long whole; struct { int low, high; } half; } u;
    unsigned kind : 3, state : 5;
    long history[];
};
struct step { struct step *next; long before[6]; int weight, more; long after; };
struct operations { long (*cost)(struct order *); struct order *(*find)(long key); };

struct order *head;
int limit = 3;
struct stats total[8];
static __thread long own;
static const struct operations *operations;

__attribute__((noinline)) static int flags_of(struct order *o)
{
    return o->flags     /* order.flags */
        & limit;        /* int. order.flags */
}

__attribute__((noinline)) static long cost(struct order *o)
{
    return o->quantity; /* order.quantity */
}

__attribute__((noinline)) static struct order *find(long key)
{
    struct order *o;
    for (o = head;      /* order*. */
         o && o->quantity != key; /* order.quantity */
         o = o->next)   /* order.next */
        ;
    return o;
}

__attribute__((noinline)) long walk(struct order *o, int shift)
{
    long sum = 0;
    while (o) {
        sum += o->quantity;                     /* order.quantity */
        sum += flags_of(o);
        o->price *= 1.5;                        /* order.price */
        for (int i = 0; i < 4; i++) {
            o->per[i].n += i;                   /* order.per[].n stats[8].[].sum */
            total[i + shift].sum += 1;          /* stats[8].[].sum */
        }
        o->u.half.high++;                       /* order.u.whole */
        o->history[sum & 7]++;                  /* order.history[] */
        own += o->state;                        /* order.kind order.state long. */
        o = o->next;                            /* order.next */
    }
    return sum;
}

#define order_of(p) ((struct order *)((char *)(p) - __builtin_offsetof(struct order, link)))

__attribute__((noinline)) long lists(struct list *l)
{
    long sum = 0;
    for (struct list *p = l->next;              /* list.next */
         p != l;
         p = p->next)                           /* list.next order.link.next */
        sum += order_of(p)->quantity;           /* order.quantity */
    return sum;
}

__attribute__((noinline)) long indirect(long key)
{
    struct order *o = operations->find(key);    /* operations.find operations*. */
    if (!o)
        return 0;
    return operations->cost(o)                  /* operations.cost operations*. */
        + o->flags;                             /* order.flags */
}

__attribute__((noinline)) double matrix(double (*m)[16], int n, struct stats *out)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 16; j++)
            sum += m[i][j];                     /* double[16].[] double. */
    out->n++;                                   /* stats.n stats.sum */
    out->sum += sum;                            /* stats.sum */
    return sum;
}

struct queue { struct step *first; long count; };

static long drain(struct queue *q, int rounds)
{
    long sum = 0;
    for (int i = 0; i < rounds; i++)
        for (struct step *s = q->first; s; s = s->next) { /* step.next queue.first */
            sum += s->weight;                   /* step.weight */
            if (s->more > 3)                    /* step.more step.weight */
                s->after += sum;                /* step.after */
            q->count++;
        }
    return sum;
}

/* what is reached through a pointer that is null at first, as far as the compiler sees */
__attribute__((noinline)) long chain(void)
{
    enum { n = 200000 };
    struct queue q = { 0, 0 };
    struct step *all = calloc(n, sizeof *all);
    int *order = malloc(n * sizeof *order);
    for (int i = 0; i < n; i++)
        order[i] = i * 7 % n;                   /* int. */
    for (int i = 0; i < n; i++) {
        struct step *s = &all[order[i]];        /* int. */
        s->next = q.first;                      /* step.next */
        s->more = i;                            /* step.more step.weight */
        s->weight = i & 7;                      /* step.weight */
        q.first = s;
    }
    return drain(&q, 4);
}

int main(int argc, char **argv)
{
    static const struct operations table = { cost, find };
    struct list l = { &l, &l };
    double m[4][16] = { { 1 } };
    (void)argv;
    operations = argc > 9 ? NULL : &table;
    for (int i = 0; i < 1000; i++) {
        struct order *o = calloc(1, sizeof *o + 64);
        o->next = head;
        o->quantity = i;
        o->link.next = l.next;
        l.next = &o->link;
        head = o;
    }
    long sum = 0;
    for (int i = 0; i < 100; i++)
        sum += walk(head, 2) + lists(&l) + indirect(i) + (long)matrix(m, 4, &total[i & 7]);
    printf("%ld %ld\n", sum, chain());
    return 0;
}
