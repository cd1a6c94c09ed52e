/*
 * Access-log analyser: the log is kept in memory, split at line ends, and each part is parsed by its own thread.
 * The totals are kept per worker, so that no lock is needed while parsing.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORKERS 4

typedef struct {
    char *text;
    size_t length;
} log_t;

typedef struct totals {
    uint64_t lines;
    uint64_t bytes_sent;
    uint32_t errors;
    uint32_t slow;
} totals_t;

typedef struct {
    pthread_t thread;
    int id;
    const char *begin, *end;
    unsigned passes;
} part_t;

static totals_t totals[MAX_WORKERS] __attribute__((aligned(64)));

/* ---- making a log ---- */

static uint32_t next_random(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

static size_t put_number(char *to, uint32_t v)
{
    char digits[12];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    for (size_t i = 0; i < n; i++)
        to[i] = digits[n - 1 - i];
    return n;
}

/* A line: METHOD status bytes microseconds */
static size_t put_line(char *to, uint32_t *state)
{
    static const char *const methods[] = {"GET", "PUT", "POST", "HEAD"};
    static const uint32_t codes[] = {200, 200, 200, 204, 304, 404, 500, 200};
    uint32_t r = next_random(state);
    const char *m = methods[r & 3];
    size_t n = strlen(m);
    memcpy(to, m, n);
    to[n++] = ' ';
    n += put_number(to + n, codes[(r >> 4) & 7]);
    to[n++] = ' ';
    n += put_number(to + n, (r >> 8) & 4095);
    to[n++] = ' ';
    n += put_number(to + n, (r >> 20) % 900);
    to[n++] = '\n';
    return n;
}

static log_t make_log(size_t lines)
{
    log_t log = {malloc(lines * 32), 0};
    uint32_t state = 0x9e3779b9;
    if (!log.text)
        abort();
    for (size_t i = 0; i < lines; i++)
        log.length += put_line(log.text + log.length, &state);
    return log;
}

/* ---- parsing it ---- */

static const char *skip_word(const char *p)
{
    while (*p != ' ' && *p != '\n')
        p++;
    return p;
}

static const char *read_number(const char *p, uint32_t *value)
{
    uint32_t v = 0;
    while (*p >= '0' && *p <= '9')
        v = v * 10 + (uint32_t)(*p++ - '0');
    *value = v;
    return p;
}

static void account(totals_t *t, uint32_t status, uint32_t bytes, uint32_t micros)
{
    t->lines++;
    t->bytes_sent += bytes;
    if (status >= 400)
        t->errors++;
    if (micros > 500)
        t->slow++;
}

__attribute__((noinline)) static const char *parse_line(const char *p, totals_t *t)
{
    uint32_t status, bytes, micros;
    p = skip_word(p) + 1;
    p = read_number(p, &status) + 1;
    p = read_number(p, &bytes) + 1;
    p = read_number(p, &micros);
    account(t, status, bytes, micros);
    return p + 1;
}

static void *analyse(void *arg)
{
    part_t *part = arg;
    for (unsigned pass = 0; pass < part->passes; pass++) {
        const char *p = part->begin;
        while (p < part->end)
            p = parse_line(p, &totals[part->id]);
    }
    return NULL;
}

static const char *line_start(const log_t *log, size_t at)
{
    const char *p = log->text + at;
    while (p > log->text && p[-1] != '\n')
        p--;
    return p;
}

int main(int argc, char **argv)
{
    unsigned passes = argc > 1 ? (unsigned)atoi(argv[1]) : 40;
    int workers = argc > 2 ? atoi(argv[2]) : 2;
    if (workers < 1 || workers > MAX_WORKERS)
        return 2;

    log_t log = make_log(12000);
    part_t parts[MAX_WORKERS];
    for (int i = 0; i < workers; i++) {
        parts[i].id = i;
        parts[i].passes = passes;
        parts[i].begin = line_start(&log, log.length * (size_t)i / (size_t)workers);
        parts[i].end = i + 1 == workers ? log.text + log.length
                                        : line_start(&log, log.length * (size_t)(i + 1) / (size_t)workers);
    }
    for (int i = 0; i < workers; i++)
        if (pthread_create(&parts[i].thread, NULL, analyse, &parts[i])) {
            perror("pthread_create");
            return 1;
        }

    totals_t sum = {0, 0, 0, 0};
    for (int i = 0; i < workers; i++) {
        pthread_join(parts[i].thread, NULL);
        sum.lines += totals[i].lines;
        sum.bytes_sent += totals[i].bytes_sent;
        sum.errors += totals[i].errors;
        sum.slow += totals[i].slow;
    }
    printf("%llu lines, %llu bytes, %u errors, %u slow\n", (unsigned long long)sum.lines,
           (unsigned long long)sum.bytes_sent, sum.errors, sum.slow);
    free(log.text);
    return 0;
}
