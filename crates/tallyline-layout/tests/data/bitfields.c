/* Bitfields: units, holes of bits, explicit padding, units of several sizes. */
enum color { RED, GREEN, BLUE = 5 };
typedef unsigned int word_t;

struct simple { int a : 3; unsigned b : 7; char c; unsigned d : 1; };
struct spanning { unsigned long long a : 40; unsigned long long b : 30; short c : 4; short : 0; short d : 2; };
struct explicit_hole { unsigned a : 5; unsigned : 3; unsigned b : 8; unsigned : 0; unsigned c : 4; };
struct after_byte { char a; int b : 1; int c : 23; };
struct before_byte { int a : 1; char b; char c; };
struct mixed { word_t a : 12; enum color b : 3; _Bool c : 1; _Bool d : 1; unsigned char e : 4; };
struct all_bits { unsigned a : 16; unsigned b : 16; };
struct tail { long a; unsigned b : 3; };
struct packed_bits { char a; unsigned b : 20; unsigned c : 12; } __attribute__((packed));
union bit_union { unsigned all; struct { unsigned low : 4; unsigned high : 28; }; unsigned char first : 3; };
struct holder { struct tail tail; struct simple simple; union bit_union bits; };

struct simple simple;
struct spanning spanning;
struct explicit_hole explicit_hole;
struct after_byte after_byte;
struct before_byte before_byte;
struct mixed mixed;
struct all_bits all_bits;
struct tail tail;
struct packed_bits packed_bits;
struct holder holder;
