/* Anonymous structs and unions, deep and side by side. */
struct nested {
	int a;
	union {
		struct { int x; char y; };
		struct { long wide; } named;
		union { short s; struct { char c[3]; union { int i; struct { short lo; short hi; }; }; } deep; };
	};
	struct { char tag; long value; } table[4];
	struct { int hidden; } *pointer;
	enum { NONE, SOME = 10, ALL = -1 } kind;
	enum { ONE } single[2];
	union { int i; float f; } *choice, values[2];
	struct a_rather_long_name_of_a_type_that_fills_the_column { int x; } a_rather_long_name_of_a_member;
	union { char a; int b; } a_rather_long_name_of_a_member_that_is_a_union_without_a_name;
};
union outer { int a; struct { char b; union { long c; struct { int d; int e; } __attribute__((packed)) f; }; } g; struct nested n; };
struct lines_inside {
	char start[48];
	struct { char first[32]; long second; union { char a[64]; struct { char b[60]; int c[20]; }; } third; } part;
	long end;
};
typedef struct { int x, y; } point_t;
typedef union { int i; char c[4]; } cell_t;
typedef enum { LEFT, RIGHT } side_t;
struct uses { point_t point; cell_t cell; side_t side; struct { point_t from; point_t to; } line; };

struct nested nested;
union outer outer;
struct lines_inside lines_inside;
struct uses uses;
