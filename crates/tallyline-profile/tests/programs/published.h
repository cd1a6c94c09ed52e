/* Says where objects are: a line of type, address, stride and count, with tabs between, for the file
 * that TALLYLINE_TRUTH names. */
#include <stdio.h>
#include <stdlib.h>

static void publish(const char *type, const void *first, size_t stride, size_t count)
{
	const char *path = getenv("TALLYLINE_TRUTH");
	FILE *file = path ? fopen(path, "a") : NULL;

	if (!file)
		return;
	fprintf(file, "%s\t%p\t%zu\t%zu\n", type, first, stride, count);
	fclose(file);
}
