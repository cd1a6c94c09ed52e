// What members point to: unfolded with --expand_pointers.
struct leaf { int value; char tag; };
typedef struct leaf leaf_t;
typedef struct chain chain_t;
struct chain { chain_t *next; int x; char c; long y; };
typedef int (*callback_t)(struct leaf *);
union either { int a; struct leaf *leaf; };
enum state { OFF, ON };
struct elsewhere;
struct middle { struct leaf *leaf; int count; leaf_t *same; };
struct ring { struct ring *next, *previous; };
struct lines { char a[60]; struct leaf *leaf; int b; chain_t *chain; };

struct top {
	struct middle *middle;
	int flags;
	struct leaf plain;
	struct leaf some[2];
	struct leaf *many[3];
	struct leaf **twice;
	void *nothing;
	void **nothings;
	int *number;
	struct leaf *const fixed;
	struct leaf *restrict alone;
	int (*function)(int, struct leaf *);
	int (**functions)(int);
	callback_t callback;
	union either *either;
	enum state *state;
	struct elsewhere *elsewhere;
	struct { int q; struct leaf *z; } inner;
	struct { int w; } *unnamed;
	const char *text;
	const char *const texts[4];
	struct lines *lines;
	chain_t *chain, *const *chains;
	struct ring *ring;
	unsigned bits : 3, more : 5;
};
union all { struct middle *middle; int x; };

struct top top;
union all all;
struct ring ring;
