/* A struct with holes, as they grow over the years. */
struct pair {
    char kind;
    long value;
};

struct ticket {
    char open;
    long number;
    char priority;
    long owner;
    short queue;
    struct pair *first;
    char closed;
};

struct ticket ticket;
struct pair pair;
