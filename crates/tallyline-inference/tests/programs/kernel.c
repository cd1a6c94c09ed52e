/* What kernels do and programs seldom: addresses kept as numbers, stacks aligned anew, data that only the
 * linker or assembly defines, parts that are seldom run put elsewhere. */
struct page {
	unsigned long flags;
	unsigned long head; /* the address of the first page, plus 1 */
	int users;
};

/* the first page, or the page itself */
__attribute__((noinline)) int users_of(struct page *page)
{
	unsigned long head = page->head;
	struct page *first = head & 1 ? (struct page *)(head - 1) : page;

	asm volatile("" : : : "memory");
	return first->users;
}

__attribute__((noinline)) static void fill(char *bytes, struct page *page)
{
	asm volatile("" : : "r"(bytes), "r"(page) : "memory");
}

/* one of several counts on the stack, chosen by ways of which one calls */
__attribute__((noinline)) int counted(struct page *page)
{
	int counts[4] = { 0 };
	int *count = &counts[1];

	fill((char *)counts, page);
	if (!(page->head & 1)) {
		fill((char *)counts, page);
		count = page->flags & 8 ? &counts[3] : &counts[0];
	}
	/* in a register, and not written out for each way */
	asm volatile("" : "+r"(count));
	++*count;
	fill((char *)counts, page);
	return counts[2];
}

/* a page that lies on a stack that is aligned anew */
__attribute__((noinline)) unsigned long aligned(struct page *page)
{
	char bytes[64] __attribute__((aligned(64)));
	struct page own = *page;

	fill(bytes, &own);
	return own.flags;
}

/* defined below, as a table that a script makes for the assembler */
extern const unsigned short lengths[];
extern const unsigned long first_address;

/* with the ends of others, one of them an object, at the same places */
asm(".section .rodata\n"
    ".globl before\nbefore:\n.globl lengths\nlengths: .short 1, 2, 3, 4\n"
    ".balign 8\n.globl other\n.type other, @object\n.size other, 8\nother:\n"
    ".globl first_address\nfirst_address: .quad 5\n"
    ".text\n");

__attribute__((noinline)) unsigned long symbol_at(unsigned long index)
{
	return lengths[index] + first_address;
}

/* Either array has the same addresses in it. */
union pages {
	struct page **pages;
	struct folio **folios;
} __attribute__((transparent_union));

struct folio {
	struct page page;
	int order;
};

__attribute__((noinline)) int first_of(union pages pages, int count)
{
	int sum = 0;

	for (int at = 0; at < count; at++)
		sum += pages.pages[at] != 0;
	return sum;
}

__attribute__((cold, noinline)) void complain(struct page *page)
{
	asm volatile("" : : "r"(page) : "memory");
}

/* What is seldom run goes elsewhere, with the page in its register. */
__attribute__((noinline)) int checked(struct page *page)
{
	if (__builtin_expect(page->users < 0, 0)) {
		complain(page);
		page->flags = 7;
		complain(page);
	}
	return page->users;
}

/* gives back a number, which is the address of a page */
__attribute__((noinline)) unsigned long _compound_head(const struct page *page)
{
	unsigned long head = page->head;

	return head & 1 ? head - 1 : (unsigned long)page;
}

__attribute__((noinline)) int users_of_head(struct page *page)
{
	return ((struct page *)_compound_head(page))->users;
}

int main(int count, char **words)
{
	struct page page = { .head = (unsigned long)count << 1 }, *pages[] = { &page };

	(void)words;
	return users_of(&page) + (int)aligned(&page) + (int)symbol_at(0) + first_of((union pages){ .pages = pages }, count) +
	       checked(&page) + users_of_head(&page);
}
