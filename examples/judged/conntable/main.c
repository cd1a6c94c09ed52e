// A table of connections looked up by port and address, one packet after the other.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNS 12000u
#define BUCKETS 16384u

struct conn {
    struct conn *next;          // chain of the bucket
    uint32_t saddr;
    uint32_t daddr;
    uint16_t sport;
    uint16_t dport;
    uint32_t mark;
    char ifname[16];
    char label[40];
    uint64_t created;
    uint64_t timeout_cfg;
    uint8_t l2_source[8];
    uint8_t l2_dest[8];
    uint64_t policy[4];
    uint64_t packets;
    uint64_t bytes;
    char user[32];
    uint64_t shaping[8];
    uint32_t state;
    uint32_t window;
    char note[24];
    uint64_t last_seen;
    uint64_t export_id;
    uint64_t export_at;
} __attribute__((aligned(64)));

struct packet {
    uint32_t saddr, daddr;
    uint16_t sport, dport;
    uint32_t len;
};

static struct conn *buckets[BUCKETS];

static uint32_t conn_hash(uint32_t s, uint32_t d, uint32_t ports)
{
    uint32_t h = s * 2654435761u ^ d * 2246822519u ^ ports * 3266489917u;
    return (h ^ h >> 15) & (BUCKETS - 1);
}

static void packet_of(uint32_t id, struct packet *p)
{
    p->saddr = 0x0a000000u + id;
    p->daddr = 0xc0a80000u + id % 251;
    p->sport = 1024 + id % 50000;
    p->dport = id % 3 ? 443 : 80;
}

static struct conn *conn_add(uint32_t id)
{
    struct packet p;
    packet_of(id, &p);
    struct conn *c = aligned_alloc(64, sizeof *c);
    if (!c)
        abort();
    memset(c, 0, sizeof *c);
    c->saddr = p.saddr;
    c->daddr = p.daddr;
    c->sport = p.sport;
    c->dport = p.dport;
    c->created = id;
    c->window = 65535;
    snprintf(c->ifname, sizeof c->ifname, "eth%u", id % 4);
    uint32_t h = conn_hash(c->saddr, c->daddr, (uint32_t)c->sport << 16 | c->dport);
    c->next = buckets[h];
    buckets[h] = c;
    return c;
}

static struct conn *conn_find(const struct packet *p)
{
    struct conn *c = buckets[conn_hash(p->saddr, p->daddr, (uint32_t)p->sport << 16 | p->dport)];
    while (c && (c->saddr != p->saddr || c->daddr != p->daddr || c->sport != p->sport || c->dport != p->dport))
        c = c->next;
    return c;
}

static int conn_input(struct conn *c, const struct packet *p, uint64_t now)
{
    c->packets++;
    c->bytes += p->len;
    if (c->state == 0 || p->len > c->window)
        c->state = 1 + (p->len & 1);
    c->window = 65535 - (p->len & 255);
    c->last_seen = now;
    return (int)c->state;
}

int main(int argc, char **argv)
{
    uint64_t packets = argc > 1 ? strtoull(argv[1], NULL, 10) : 40000;
    struct conn **all = malloc(CONNS * sizeof *all);
    for (uint32_t i = 0; i < CONNS; i++)
        all[i] = conn_add(i);
    uint64_t x = 88172645463325252ull, states = 0, lost = 0;
    for (uint64_t n = 0; n < packets; n++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        struct packet p;
        packet_of((uint32_t)(x >> 20) % CONNS, &p);
        p.len = 64 + (x & 1023);
        struct conn *c = conn_find(&p);
        if (c)
            states += (uint64_t)conn_input(c, &p, n);
        else
            lost++;
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < CONNS; i++) {
        bytes += all[i]->bytes;
        free(all[i]);
    }
    free(all);
    printf("%llu bytes, states %llu, lost %llu\n", (unsigned long long)bytes, (unsigned long long)states,
           (unsigned long long)lost);
    return 0;
}
