// Software renderer of a tiled map: a painter shades tiles with the current quality while another thread steps the animation.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILE 16
#define MAP_W 24
#define MAP_H 24
#define SPRITES 32

typedef struct {
    uint8_t kind;
    uint8_t height;
    uint16_t palette;
} cell_t;

typedef struct {
    int32_t x, y;
    int32_t dx, dy;
} sprite_t;

typedef struct {
    pthread_t thread;
    uint32_t *pixels; // of one tile, used again for the next
    const cell_t *cells;
    unsigned first, last;
    unsigned frames;
    uint64_t digest;
} painter_t;

typedef struct {
    pthread_t thread;
    sprite_t *sprites;
    unsigned long steps;
    int64_t drift;
} animator_t;

// Settings of the console; painters read them for every span.
static atomic_uint render_quality = 3;

// Clock of the animation.
static atomic_uint animation_step = 1;

static uint32_t palette[256];

static void make_palette(void)
{
    uint32_t x = 12345;
    for (int i = 0; i < 256; i++) {
        x = x * 1103515245u + 12345u;
        palette[i] = x >> 8;
    }
}

static cell_t *make_map(void)
{
    cell_t *cells = aligned_alloc(64, MAP_W * MAP_H * sizeof *cells);
    if (!cells)
        abort();
    for (unsigned i = 0; i < MAP_W * MAP_H; i++) {
        cells[i].kind = (uint8_t)((i * 7) % 5);
        cells[i].height = (uint8_t)((i * i) % 64);
        cells[i].palette = (uint16_t)((i * 13) % 240);
    }
    return cells;
}

static sprite_t *make_sprites(void)
{
    sprite_t *s = aligned_alloc(64, SPRITES * sizeof *s);
    if (!s)
        abort();
    for (int i = 0; i < SPRITES; i++)
        s[i] = (sprite_t){i * 100, i * 71 % 900, i % 7 - 3, i % 5 - 2};
    return s;
}

// One span of eight pixels. With low quality only every second pixel is shaded.
__attribute__((noinline)) static void paint_span(uint32_t *to, const cell_t *c, unsigned row)
{
    unsigned quality = atomic_load_explicit(&render_quality, memory_order_relaxed);
    uint32_t shade = (c->height + row) * quality;
    unsigned stride = quality >= 2 ? 1 : 2;
    for (unsigned i = 0; i < 8; i += stride)
        to[i] = palette[(c->palette + i + c->kind) & 255] + shade;
}

static void paint_tile(uint32_t *pixels, const cell_t *c)
{
    for (unsigned row = 0; row < TILE; row++) {
        paint_span(pixels + row * TILE, c, row);
        paint_span(pixels + row * TILE + 8, c, row + 1);
    }
}

static void *painter_main(void *arg)
{
    painter_t *p = arg;
    uint64_t digest = 0;
    for (unsigned f = 0; f < p->frames; f++)
        for (unsigned i = p->first; i < p->last; i++) {
            paint_tile(p->pixels, &p->cells[i]);
            digest = digest * 33 + p->pixels[(i + f) % (TILE * TILE)];
        }
    p->digest = digest;
    return NULL;
}

static void move_sprite(sprite_t *s, unsigned step)
{
    s->x += s->dx;
    s->y += s->dy;
    if (s->x < 0 || s->x > 4000)
        s->dx = -s->dx;
    if (s->y < 0 || s->y > 4000)
        s->dy = -s->dy;
    if ((step & 1023) == 0)
        s->dx ^= 1;
}

static void *animator_main(void *arg)
{
    animator_t *a = arg;
    for (unsigned long n = 0; n < a->steps; n++) {
        move_sprite(&a->sprites[n % SPRITES], (unsigned)n);
        atomic_store_explicit(&animation_step, (unsigned)n, memory_order_relaxed);
    }
    for (int i = 0; i < SPRITES; i++)
        a->drift += a->sprites[i].x - a->sprites[i].y;
    return NULL;
}

static uint32_t *tile_buffer(void)
{
    uint32_t *p = aligned_alloc(64, TILE * TILE * sizeof *p);
    if (!p)
        abort();
    memset(p, 0, TILE * TILE * sizeof *p);
    return p;
}

int main(int argc, char **argv)
{
    unsigned frames = argc > 1 ? (unsigned)atoi(argv[1]) : 60;
    unsigned long steps = (unsigned long)frames * 60000;
    make_palette();
    cell_t *map = make_map();
    painter_t painter = {.pixels = tile_buffer(), .cells = map, .first = 0, .last = MAP_W * MAP_H, .frames = frames};
    animator_t animator = {.sprites = make_sprites(), .steps = steps};

    if (pthread_create(&animator.thread, NULL, animator_main, &animator) ||
        pthread_create(&painter.thread, NULL, painter_main, &painter))
        return 1;
    pthread_join(painter.thread, NULL);
    pthread_join(animator.thread, NULL);

    printf("quality %u, digest %016llx, last step %u, drift %lld\n", atomic_load(&render_quality),
           (unsigned long long)painter.digest, atomic_load(&animation_step), (long long)animator.drift);
    free(painter.pixels);
    free(animator.sprites);
    free(map);
    return 0;
}
