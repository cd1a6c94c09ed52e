// Variables of threads in C++. A line names the fields that it touches.
struct stats { unsigned long hits, misses; int kind; };

namespace shop {
thread_local stats own;
static thread_local stats mine;
struct order {
    static thread_local stats all;
};
thread_local stats order::all;
}

#define APART __attribute__((noinline))

APART void of_namespace()
{
    shop::own.misses++; }                   // stats.misses

APART void of_file()
{
    shop::mine.hits++; }                    // stats.hits

APART void of_class()
{
    shop::order::all.misses++; }            // stats.misses

APART void of_function()
{
    static thread_local stats last;
    last.kind++; }                          // stats.kind

template <class T> APART void of_template()
{
    static thread_local stats last;
    last.hits += sizeof(T); }               // stats.hits

int main()
{
    of_namespace();
    of_file();
    of_class();
    of_function();
    of_template<int>();
    of_template<long>();
}
