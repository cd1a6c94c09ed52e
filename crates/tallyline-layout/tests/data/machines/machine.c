/* what differs between machines: pointers, long, the alignment of double, the order of bits */
struct inner { char c; double d; };
enum direction { UP = -1, DOWN = 1 };
struct outer {
	short s;
	long l;
	void *p;
	struct inner inner[2];
	enum direction direction;
	unsigned low : 3, high : 12;
	long long wide;
	int (*call)(struct outer *, const char *);
	unsigned char tail;
};
union both { struct outer *outer; long double ld; char bytes[5]; };
struct outer outer;
union both both;
