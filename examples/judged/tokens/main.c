// A parser of assignments with a table of symbols: "name = name op number ;".
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE 512u

struct symbol {
    struct symbol *next;
    int64_t value;
    uint32_t hash;
    uint32_t uses;
    char name[8];
};

struct lexer {
    const char *at;
    const char *word;
    int64_t number;
    uint32_t word_len;
    int kind;
};

static struct symbol *table[TABLE];

static struct symbol *intern(const char *word, uint32_t len)
{
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)word[i]) * 16777619u;
    for (struct symbol *s = table[h % TABLE]; s; s = s->next)
        if (s->hash == h && strncmp(s->name, word, len) == 0 && s->name[len] == 0) {
            s->uses++;
            return s;
        }
    struct symbol *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->hash = h;
    memcpy(s->name, word, len);
    s->next = table[h % TABLE];
    table[h % TABLE] = s;
    return s;
}

static int lex(struct lexer *l)
{
    while (*l->at == ' ' || *l->at == '\n')
        l->at++;
    if (*l->at == 0)
        return l->kind = 0;
    if (isalpha((unsigned char)*l->at)) {
        l->word = l->at;
        while (isalnum((unsigned char)*l->at))
            l->at++;
        l->word_len = (uint32_t)(l->at - l->word);
        return l->kind = 'w';
    }
    if (isdigit((unsigned char)*l->at)) {
        l->number = 0;
        while (isdigit((unsigned char)*l->at))
            l->number = l->number * 10 + (*l->at++ - '0');
        return l->kind = 'n';
    }
    return l->kind = *l->at++;
}

static void statement(struct lexer *l)
{
    struct symbol *to = intern(l->word, l->word_len);
    if (lex(l) != '=' || lex(l) != 'w')
        abort();
    struct symbol *from = intern(l->word, l->word_len);
    int op = lex(l);
    if (lex(l) != 'n')
        abort();
    to->value = op == '+' ? from->value + l->number : (from->value ^ l->number) % 100003;
    if (lex(l) != ';')
        abort();
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
    size_t cap = 64 * 1024, len = 0;
    char *text = malloc(cap);
    uint32_t x = 99;
    while (len + 40 < cap) {
        x = x * 1664525u + 1013904223u;
        len += (size_t)sprintf(text + len, "v%u = v%u %c %u ;\n", x >> 24, (x >> 16) & 255, x & 256 ? '+' : '^',
                               (x >> 4) & 4095);
    }
    uint64_t statements = 0;
    for (unsigned r = 0; r < rounds; r++) {
        struct lexer l = {text, NULL, 0, 0, 0};
        while (lex(&l) == 'w') {
            statement(&l);
            statements++;
        }
    }
    int64_t sum = 0;
    for (unsigned i = 0; i < TABLE; i++)
        for (struct symbol *s = table[i], *n; s; s = n) {
            sum += s->value ^ s->uses;
            n = s->next;
            free(s);
        }
    free(text);
    printf("%llu statements, sum %lld\n", (unsigned long long)statements, (long long)sum);
    return 0;
}
