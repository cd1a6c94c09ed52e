// Classes of every kind that the layout of C++ knows.
#include <cstddef>
namespace probe {
struct Plain { char a; long b; short c; };
struct Empty {};
struct Other {};
namespace inner {
class Hidden { char x; int y; protected: short z; public: char w; Hidden() : x(), y(), z(), w() {} };
  struct Derived : Hidden { char tail; };
template <class T, int N> struct Box { T items[N]; char flag; struct Node { T *next; char mark; } node; };
}
enum class Small : unsigned char { A, B };
enum class Wide : unsigned long { A };
struct Aligned { alignas(32) char a; char b; };
struct alignas(64) Line { int a; };
struct Mixed {
  inner::Box<short, 3> box; Small small; Wide wide; int &reference; int &&moved; int Plain::*data;
  void (Plain::*function)(int); int (*array)[5]; int (&array_reference)[3]; int (*pointer)(char);
  decltype(nullptr) null; Aligned aligned; Line line; const volatile long *const qualified;
  Mixed();
};
struct WithEmpty { Empty e; int x; Empty f; Other g; char c; };
struct NoAddress { [[no_unique_address]] Empty e; int x; [[no_unique_address]] Empty f; [[no_unique_address]] Other g; };
struct InTail { [[no_unique_address]] inner::Derived d; char c; };
struct FromEmpty : Empty { int x; };
struct FromEmpties : Empty, Other { char c; };
struct FirstEmpty : Empty { Empty e; char c; };
struct Virtual { virtual ~Virtual(); int v; };
struct VirtualDerived : Virtual { char c; };
struct Tail : VirtualDerived { char d; };
struct NotFirst { int n; };
struct Reordered : NotFirst, Virtual { char c; };
struct Two : Plain, inner::Hidden, Virtual { char c; };
struct Interface { virtual void f(); };
struct Left : virtual Virtual { int l; };
struct Right : virtual Virtual { char r; };
struct Diamond : Left, Right { char d; };
struct Below : Diamond { short s; };
struct Nearly : virtual Interface { char n; };
struct NearlyToo : virtual Interface { long n; };
struct Both : Nearly, NearlyToo { char b; };
struct PlainBase : virtual Plain { char p; };
struct PlainAgain : PlainBase, virtual inner::Hidden { char q; };
struct Wider : virtual Line { char w; };
struct EmptyVirtual : virtual Empty { int v; };
struct BelowEmpty : EmptyVirtual, virtual Plain { char b; };
struct Fields { unsigned a : 3; unsigned b : 7; bool c : 1; unsigned long d : 40; char e; int f : 5; };
struct FieldsInTail : inner::Hidden { unsigned a : 3; unsigned b : 9; };
union Value { int a; double b; char c[13]; Empty e; Value() : a() {} ~Value() {} };
struct Nested { union { int a; float b; }; struct { char c; long d; } named; Value value; };
struct Flexible { int count; char data[]; };
struct Pointers { Mixed *mixed; inner::Box<char, 1> *box; Diamond *diamond; };
Virtual::~Virtual() {}
void Interface::f() {}
static int number, numbers[3];
Mixed::Mixed() : reference(number), moved(static_cast<int &&>(number)), array_reference(numbers), qualified() {}
}
