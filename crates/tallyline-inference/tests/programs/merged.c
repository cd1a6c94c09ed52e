// A variable that a function has for itself, and what the linker has put into it for another file.
int of_other(void);

__attribute__((noinline)) int own(unsigned n)
{
    static const int expected[4] = { 3, 5, 7, 9 };
    return expected[n & 3];
}

int main(int argc, char **argv)
{
    return own(argc) + of_other();
}
__asm__(".globl merged\n.set merged, expected.0 + 8");
