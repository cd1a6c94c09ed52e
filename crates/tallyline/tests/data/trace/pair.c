/* Two threads, each writes its own field of one struct; no library. */
struct pair { long a, b; } __attribute__((aligned(64)));
static volatile struct pair pair;
static int child = 1;
static char stack[4096] __attribute__((aligned(16)));

static long call(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return result;
}

__attribute__((noreturn, used)) static void second(void)
{
	for (int i = 0; i < 400; i++)
		pair.b++;
	call(60, 0, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

__attribute__((noreturn)) void _start(void)
{
	/* VM FS FILES SIGHAND THREAD SYSVSEM PARENT_SETTID CHILD_CLEARTID */
	register long ctid __asm__("r10") = (long)&child;
	long result;
	__asm__ volatile("syscall\n\ttest %%eax, %%eax\n\tjnz 1f\n\tcall second\n1:"
		: "=a"(result) : "a"(56L), "D"(0x350f00L), "S"(stack + sizeof stack), "d"(&child), "r"(ctid) : "rcx", "r11", "memory");
	for (int i = 0; i < 400; i++)
		pair.a++;
	while (*(volatile int *)&child)
		call(202, (long)&child, 0, child, 0, 0, 0);
	call(231, 0, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}
