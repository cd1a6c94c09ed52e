// Crowd simulation of a game server: every tick each character within a sector is steered in the order of its sector's list.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 2
#define SECTORS 64

struct inventory {
    uint16_t items[24];
    uint16_t amounts[24];
};

struct appearance {
    uint32_t mesh;
    uint32_t skin;
    float scale;
    float tint[3];
};

struct npc {
    float x, y;                   // where it is
    uint32_t id;
    char name[28];
    struct appearance appearance;
    uint32_t faction;
    char dialogue[48];
    float vx, vy;                 // where it goes
    struct inventory inventory;
    uint32_t quest_flags[8];
    float home_x, home_y;
    uint32_t energy;              // what it has left
    uint32_t gold;
    uint64_t last_login;
    char notes[40];
} __attribute__((aligned(64)));

struct sector {
    uint32_t *members;
    uint32_t count;
};

struct world {
    struct npc *npcs;
    uint32_t count;
    struct sector sectors[SECTORS];
};

struct worker {
    pthread_t thread;
    struct world *world;
    uint32_t first, last;
    unsigned ticks;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185ull;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44dull;
    return x ^ x >> 33;
}

static void npc_spawn(struct npc *n, uint32_t id)
{
    uint64_t r = mix(id + 1);
    n->id = id;
    n->x = (float)(r & 1023);
    n->y = (float)(r >> 10 & 1023);
    n->vx = (float)(int)(r >> 20 & 15) - 7.5f;
    n->vy = (float)(int)(r >> 24 & 15) - 7.5f;
    n->home_x = n->x;
    n->home_y = n->y;
    n->energy = 1000 + (uint32_t)(r >> 32 & 255);
    n->faction = id % 5;
    n->gold = id % 100;
    n->appearance.mesh = id % 17;
    n->appearance.scale = 1.0f;
    memcpy(n->name, "npc", 4);
    n->inventory.items[0] = (uint16_t)(id % 50);
    n->inventory.amounts[0] = 1;
}

static struct world *world_make(uint32_t count)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    w->count = count;
    w->npcs = aligned_alloc(64, count * sizeof *w->npcs);
    if (!w->npcs)
        abort();
    memset(w->npcs, 0, count * sizeof *w->npcs);
    for (uint32_t i = 0; i < count; i++)
        npc_spawn(&w->npcs[i], i);
    uint32_t per = count / SECTORS;
    for (uint32_t s = 0; s < SECTORS; s++) {
        w->sectors[s].members = malloc(per * sizeof(uint32_t));
        if (!w->sectors[s].members)
            abort();
        w->sectors[s].count = per;
    }
    // The characters have wandered for long: the members of a sector are anywhere in the pool.
    uint32_t *order = malloc(count * sizeof *order);
    if (!order)
        abort();
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(mix(i * 31ull + 5) % (i + 1));
        uint32_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (uint32_t s = 0; s < SECTORS; s++)
        memcpy(w->sectors[s].members, order + s * per, per * sizeof *order);
    free(order);
    return w;
}

static void world_free(struct world *w)
{
    for (uint32_t s = 0; s < SECTORS; s++)
        free(w->sectors[s].members);
    free(w->npcs);
    free(w);
}

__attribute__((noinline)) static void steer(struct npc *n)
{
    if (n->energy == 0)
        return;
    n->x += n->vx * 0.0625f;
    n->y += n->vy * 0.0625f;
    if (n->x < 0 || n->x > 1024)
        n->vx = -n->vx;
    if (n->y < 0 || n->y > 1024)
        n->vy = -n->vy;
    n->energy--;
}

static void *tick_sectors(void *arg)
{
    struct worker *k = arg;
    for (unsigned t = 0; t < k->ticks; t++)
        for (uint32_t s = k->first; s < k->last; s++) {
            const struct sector *sector = &k->world->sectors[s];
            for (uint32_t i = 0; i < sector->count; i++)
                steer(&k->world->npcs[sector->members[i]]);
        }
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned ticks = argc > 1 ? (unsigned)atoi(argv[1]) : 6;
    uint32_t count = argc > 2 ? (uint32_t)atoi(argv[2]) / SECTORS * SECTORS : 96000;
    struct world *w = world_make(count);
    struct worker workers[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.world = w, .first = i * SECTORS / WORKERS, .last = (i + 1) * SECTORS / WORKERS,
                                     .ticks = ticks};
        if (pthread_create(&workers[i].thread, NULL, tick_sectors, &workers[i]))
            return 1;
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);

    double sum = 0;
    uint64_t energy = 0;
    for (uint32_t i = 0; i < count; i += 101) {
        sum += (double)w->npcs[i].x - (double)w->npcs[i].y;
        energy += w->npcs[i].energy;
    }
    printf("%u characters, %u ticks: %.3f, energy %llu\n", count, ticks, sum, (unsigned long long)energy);
    world_free(w);
    return 0;
}
