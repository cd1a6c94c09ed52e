// The constant that is at the end of another file's array.
int of_other(void)
{
    int n;
    __asm__("movl merged(%%rip), %0" : "=r"(n));
    return n;
}
