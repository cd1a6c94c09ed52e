/* Sums the orders that are paid, in an order of memory that no prefetcher guesses. */
#include <stdio.h>
#include <stdlib.h>

enum { ORDERS = 1 << 20, PAID = 1 };

struct order {
    char customer[32];
    long id;
    int quantity;
    int price;
    int flags;
    char note[12];
};

static struct order *make_orders(void)
{
    struct order *orders = aligned_alloc(64, ORDERS * sizeof(struct order));
    for (long i = 0; orders && i < ORDERS; i++) {
        orders[i].id = i;
        orders[i].quantity = 2;
        orders[i].price = 3;
        orders[i].flags = i % 2 ? PAID : 0;
    }
    return orders;
}

__attribute__((noinline)) static long sum_paid(const struct order *orders, long rounds)
{
    long total = 0;
    unsigned long next = 1;
    for (long i = 0; i < rounds; i++) {
        next = next * 6364136223846793005ul + 1442695040888963407ul;
        const struct order *order = &orders[next >> 44];
        if (order->flags & PAID)
            total += (long)order->quantity * order->price;
    }
    return total;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 20 * 1000 * 1000;
    const struct order *orders = make_orders();
    if (!orders)
        return 1;
    printf("%ld\n", sum_paid(orders, rounds));
    return 0;
}
