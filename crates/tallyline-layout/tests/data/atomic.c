/* Atomic types, which pahole cannot write as BTF. */
typedef _Atomic int counter_t;
struct atomics { _Atomic int a; counter_t b; _Atomic(char *) c; const _Atomic long d; };
struct atomics atomics = { 0 };
