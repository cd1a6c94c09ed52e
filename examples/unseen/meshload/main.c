// Loads the parts of a model alone, then bakes the light of its vertices with three threads, each its own stretch.
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 300
#define BAKERS 3
#define LAMPS 5

// As the file has it. There are few, and the loader looks at a part two or three times in all.
struct part {
    char name[64];
    char material[64];
    float transform[16];
    uint32_t first_vertex;
    uint32_t vertices;
    char author[48];
    char licence[48];
    uint32_t flags;
    uint32_t parent;
    double bounds[6];
    uint32_t checksum;
};

struct vertex {
    float position[3];
    float normal[3];
    float light;
    uint32_t part;
};

struct lamp {
    float position[3];
    float power;
};

struct model {
    struct part *parts;
    struct vertex *vertices;
    uint32_t count;
    struct lamp lamps[LAMPS];
};

// Vertices of one baker: the stretches begin on lines of their own, as two vertices have 64 bytes.
struct baker {
    pthread_t thread;
    const struct model *model;
    struct vertex *begin, *end;
    unsigned bounces;
    float brightest;
};

static float unit(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * (1.0f / 16777216.0f);
}

static void load_parts(struct model *m)
{
    uint32_t at = 0, state = 7;
    for (uint32_t i = 0; i < PARTS; i++) {
        struct part *p = &m->parts[i];
        memset(p, 0, sizeof *p);
        snprintf(p->name, sizeof p->name, "part.%03u", i);
        snprintf(p->material, sizeof p->material, "material-%u", i % 9);
        strcpy(p->author, "nobody");
        for (int k = 0; k < 4; k++)
            p->transform[k * 5] = 1.0f;
        p->transform[3] = unit(&state) * 10.0f;
        p->transform[7] = unit(&state) * 10.0f;
        p->flags = i % 11 == 10;
        p->parent = i / 4;
        p->first_vertex = at;
        p->vertices = 20 + i * 7 % 60;
        at += p->vertices;
    }
    m->count = (at + 1) & ~1u;
}

static void load_vertices(struct model *m)
{
    uint32_t state = 21;
    for (uint32_t i = 0; i < PARTS; i++) {
        struct part *p = &m->parts[i];
        for (uint32_t k = 0; k < p->vertices; k++) {
            struct vertex *v = &m->vertices[p->first_vertex + k];
            for (int c = 0; c < 3; c++) {
                v->position[c] = unit(&state) + (c < 2 ? p->transform[3 + 4 * c] : 0.0f);
                v->normal[c] = unit(&state) - 0.5f;
            }
            v->part = i;
            p->checksum = p->checksum * 31 + (uint32_t)(v->position[0] * 100.0f);
        }
    }
    for (int l = 0; l < LAMPS; l++)
        m->lamps[l] = (struct lamp){{(float)l * 3.0f, 10.0f - (float)l, 4.0f}, 20.0f + (float)l};
}

static struct model *model_load(void)
{
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        abort();
    m->parts = malloc(PARTS * sizeof *m->parts);
    if (!m->parts)
        abort();
    load_parts(m);
    size_t bytes = (m->count * sizeof *m->vertices + 63) / 64 * 64;
    m->vertices = aligned_alloc(64, bytes);
    if (!m->vertices)
        abort();
    memset(m->vertices, 0, bytes);
    load_vertices(m);
    return m;
}

static void model_free(struct model *m)
{
    free(m->vertices);
    free(m->parts);
    free(m);
}

static float light_of(const struct vertex *v, const struct lamp *lamps)
{
    float sum = 0;
    for (int l = 0; l < LAMPS; l++) {
        float d[3], square = 0.01f, cosine = 0;
        for (int c = 0; c < 3; c++) {
            d[c] = lamps[l].position[c] - v->position[c];
            square += d[c] * d[c];
            cosine += d[c] * v->normal[c];
        }
        if (cosine > 0)
            sum += lamps[l].power * cosine / (square * sqrtf(square));
    }
    return sum;
}

static void *bake(void *arg)
{
    struct baker *b = arg;
    float brightest = 0;
    for (unsigned n = 0; n < b->bounces; n++)
        for (struct vertex *v = b->begin; v < b->end; v++) {
            v->light = v->light * 0.25f + light_of(v, b->model->lamps);
            if (v->light > brightest)
                brightest = v->light;
        }
    b->brightest = brightest;
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned bounces = argc > 1 ? (unsigned)atoi(argv[1]) : 200;
    struct model *m = model_load();
    struct baker bakers[BAKERS];
    uint32_t at = 0;
    for (uint32_t i = 0; i < BAKERS; i++) {
        uint32_t end = i + 1 == BAKERS ? m->count : (m->count / BAKERS * (i + 1)) & ~1u;
        bakers[i] = (struct baker){.model = m, .begin = m->vertices + at, .end = m->vertices + end, .bounces = bounces};
        at = end;
        if (pthread_create(&bakers[i].thread, NULL, bake, &bakers[i]))
            return 1;
    }
    float brightest = 0;
    for (int i = 0; i < BAKERS; i++) {
        pthread_join(bakers[i].thread, NULL);
        if (bakers[i].brightest > brightest)
            brightest = bakers[i].brightest;
    }

    double sum = 0;
    uint32_t checksum = 0, hidden = 0;
    for (uint32_t i = 0; i < m->count; i++)
        sum += (double)m->vertices[i].light;
    for (uint32_t i = 0; i < PARTS; i++) {
        checksum ^= m->parts[i].checksum;
        hidden += m->parts[i].flags;
    }
    printf("%u vertices, light %.2f, brightest %.3f, %u parts hidden, checksum %08x\n", m->count, sum,
           (double)brightest, hidden, checksum);
    model_free(m);
    return 0;
}
