struct three { char a[18]; _Atomic struct { char x, y, z; } d; char after; } three;
struct many {
  char t;
  _Atomic struct { char x, y, z; } d;
  short s;
  _Atomic struct { int a[3]; } e;
  _Atomic struct { char c[20]; } big;
  char last;
} many;
