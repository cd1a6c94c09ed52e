/* Every kind of type that C has. */
#include <stddef.h>
enum small { TINY } __attribute__((packed));
enum signs { MINUS = -3, ZERO, PLUS = 70000 };
enum wide { HUGE_VALUE = 0x123456789abLL };
typedef int (*callback_t)(void *context, const char *text);
typedef int plain_function(int);
typedef const volatile int cv_t;
typedef int row_t[4];
typedef struct later later_t;
struct later;
struct pointers {
	void *a;
	const char *b;
	char *const c;
	const char *const *d;
	const struct later *e;
	later_t **f;
	volatile int *restrict g;
	struct pointers *h;
	enum signs *i;
	const void *j;
};
struct functions {
	void (*a)(void);
	int (*b)(int, const char *, ...);
	callback_t c;
	plain_function *d;
	struct pointers *(*e)(struct functions *, callback_t, void (*)(int));
	void (*f[3])(int);
};
struct arrays {
	int a[3];
	char b[2][3][4];
	row_t c;
	row_t d[2];
	struct pointers e[2];
	const char f[8];
	char g[0];
	int h;
	long i[];
};
struct numbers {
	char a; signed char b; unsigned char c; short d; unsigned short e; int f; unsigned g; long h;
	unsigned long i; long long j; unsigned long long k; float l; double m; _Bool n; size_t o; wchar_t p;
};
struct qualified { const int a; volatile long b; const volatile char c; cv_t d; const struct arrays *e; };
struct enums { enum small a; enum signs b; enum wide c; };
struct single_flexible { char only[0]; };

struct pointers pointers = { 0 };
struct functions functions;
struct arrays arrays;
struct numbers numbers;
struct qualified qualified = { 0 };
struct enums enums;
struct single_flexible single_flexible;
