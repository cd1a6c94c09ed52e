// A bridge between two network segments: one thread forwards each direction, and each counts what it has forwarded.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_TABLE 512
#define FRAMES 128
#define FRAME_BYTES 64

struct mac {
    uint8_t octets[6];
};

struct frame {
    struct mac to;
    struct mac from;
    uint16_t ethertype;
    uint16_t length;
    uint8_t payload[FRAME_BYTES - 16];
};

struct port_entry {
    uint64_t mac;
    uint32_t port;
    uint32_t vlan;
};

// Learned before the bridge starts to forward; not changed any more.
static struct port_entry port_table[PORT_TABLE] __attribute__((aligned(64)));

static uint64_t upstream_bytes;
static uint64_t downstream_bytes;

enum direction { UPSTREAM, DOWNSTREAM };

struct forwarder {
    pthread_t thread;
    enum direction direction;
    struct frame *ring;
    unsigned long frames;
    uint64_t ports;
    uint64_t flooded;
};

static uint64_t mac_value(const struct mac *m)
{
    uint64_t v = 0;
    for (int i = 0; i < 6; i++)
        v = v << 8 | m->octets[i];
    return v;
}

static void mac_set(struct mac *m, uint64_t v)
{
    for (int i = 5; i >= 0; i--) {
        m->octets[i] = (uint8_t)v;
        v >>= 8;
    }
}

static uint32_t mac_slot(uint64_t mac)
{
    return (uint32_t)((mac * 0x9e3779b97f4a7c15ull) >> 55);
}

static void learn(uint64_t mac, uint32_t port)
{
    uint32_t at = mac_slot(mac);
    while (port_table[at].mac != 0 && port_table[at].mac != mac)
        at = (at + 1) % PORT_TABLE;
    port_table[at].mac = mac;
    port_table[at].port = port;
    port_table[at].vlan = port / 4;
}

static const struct port_entry *find_port(uint64_t mac)
{
    for (uint32_t at = mac_slot(mac); port_table[at].mac != 0; at = (at + 1) % PORT_TABLE)
        if (port_table[at].mac == mac)
            return &port_table[at];
    return NULL;
}

static uint64_t host_mac(uint32_t i)
{
    return 0x020000000000ull | (uint64_t)i * 2654435761u;
}

static struct frame *make_ring(uint32_t salt)
{
    struct frame *ring = aligned_alloc(64, FRAMES * sizeof *ring);
    if (!ring)
        abort();
    memset(ring, 0, FRAMES * sizeof *ring);
    for (uint32_t i = 0; i < FRAMES; i++) {
        mac_set(&ring[i].to, host_mac((i * 5 + salt) % 220));
        mac_set(&ring[i].from, host_mac((i * 3 + salt) % 220));
        ring[i].ethertype = i % 6 == 5 ? 0x86dd : 0x0800;
        ring[i].length = (uint16_t)(64 + (i * 97 + salt) % 1400);
    }
    return ring;
}

__attribute__((noinline)) static uint32_t forward_up(const struct frame *f)
{
    const struct port_entry *e = find_port(mac_value(&f->to));
    upstream_bytes += f->length;
    return e ? e->port : UINT32_MAX;
}

__attribute__((noinline)) static uint32_t forward_down(const struct frame *f)
{
    const struct port_entry *e = find_port(mac_value(&f->to));
    uint32_t tag = e && f->ethertype == 0x86dd ? e->vlan << 16 : 0;
    downstream_bytes += f->length + (tag ? 4u : 0u);
    return e ? e->port | tag : UINT32_MAX;
}

static void *run_forwarder(void *arg)
{
    struct forwarder *fw = arg;
    uint64_t ports = 0, flooded = 0;
    for (unsigned long i = 0; i < fw->frames; i++) {
        const struct frame *f = &fw->ring[i % FRAMES];
        uint32_t port = fw->direction == UPSTREAM ? forward_up(f) : forward_down(f);
        if (port == UINT32_MAX)
            flooded++;
        else
            ports += port;
    }
    fw->ports = ports;
    fw->flooded = flooded;
    return NULL;
}

static void report(const char *name, const struct forwarder *fw, uint64_t bytes)
{
    printf("%s: %lu frames, %llu bytes, %llu flooded, ports %llu\n", name, fw->frames, (unsigned long long)bytes,
           (unsigned long long)fw->flooded, (unsigned long long)fw->ports);
}

int main(int argc, char **argv)
{
    unsigned long frames = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000000;
    for (uint32_t i = 0; i < 200; i++)
        learn(host_mac(i), i % 24);

    struct forwarder up = {.direction = UPSTREAM, .ring = make_ring(1), .frames = frames};
    struct forwarder down = {.direction = DOWNSTREAM, .ring = make_ring(8), .frames = frames};
    if (pthread_create(&up.thread, NULL, run_forwarder, &up) ||
        pthread_create(&down.thread, NULL, run_forwarder, &down)) {
        fputs("cannot start a thread\n", stderr);
        return 1;
    }
    pthread_join(up.thread, NULL);
    pthread_join(down.thread, NULL);
    report("up", &up, upstream_bytes);
    report("down", &down, downstream_bytes);
    free(up.ring);
    free(down.ring);
    return 0;
}
