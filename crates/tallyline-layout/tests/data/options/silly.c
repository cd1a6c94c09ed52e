// Bitfields as wide as their types: plain members with --fixup_silly_bitfields.
struct plain { unsigned char a : 8; int b : 32; unsigned long c : 64; short d : 16; };
struct mixed { char a : 3; unsigned char b : 8; unsigned c : 8; int d : 32; int e : 1; };
struct __attribute__((packed)) packed { char a : 3; int b : 32; unsigned char c; };
struct holder { struct plain plain; _Bool flag : 1; };
union both { int a : 32; char b : 8; };
typedef unsigned int word;
struct named { word a : 32; word b : 31; };
struct plain plain; struct mixed mixed; struct packed packed; struct holder holder; union both both; struct named named;
