/* Gathers whose index is known, known by its steps, or not known; string moves with two operands. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

struct node {
	uint64_t first;
	uint64_t cold;
	uint64_t third, fourth, fifth, sixth, seventh, eighth;
};

struct copy {
	uint64_t head;
	uint64_t body[2];
};

#define FUNCTION __attribute__((noinline))
typedef const long long word;

FUNCTION __m256i index_of_zeros(struct node *node)
{
	return _mm256_i64gather_epi64((word *)&node->cold, _mm256_setzero_si256(), 8);
}

FUNCTION __m256i index_of_constants(struct node *nodes)
{
	return _mm256_i64gather_epi64((word *)&nodes->cold, _mm256_set_epi64x(24, 16, 8, 0), 8);
}

FUNCTION __m256i index_of_words(struct node *nodes)
{
	return _mm256_i32gather_epi64((word *)&nodes->cold, _mm_set_epi32(24, 16, 8, 0), 8);
}

FUNCTION __m256i index_shifted(struct node *nodes, const __m256i *numbers)
{
	__m256i index = _mm256_slli_epi64(_mm256_loadu_si256(numbers), 3);
	return _mm256_i64gather_epi64((word *)&nodes->cold, index, 8);
}

FUNCTION __m256i index_in_loop(struct node *nodes, long count)
{
	__m256i index = _mm256_set_epi64x(24, 16, 8, 0), sum = _mm256_setzero_si256();

	for (long i = 0; i < count; i++) {
		sum = _mm256_add_epi64(sum, _mm256_i64gather_epi64((word *)&nodes->cold, index, 8));
		index = _mm256_add_epi64(index, _mm256_set1_epi64x(32));
	}
	return sum;
}

FUNCTION __m256i pointers(struct node *a, struct node *b, struct node *c, struct node *d)
{
	__m256i all = _mm256_set_epi64x((intptr_t)a, (intptr_t)b, (intptr_t)c, (intptr_t)d);
	return _mm256_i64gather_epi64((word *)offsetof(struct node, cold), all, 1);
}

FUNCTION __m256i pointer_to_all(struct node *node)
{
	__m256i all = _mm256_set1_epi64x((intptr_t)node);
	return _mm256_i64gather_epi64((word *)offsetof(struct node, cold), all, 1);
}

FUNCTION __m256i index_not_known(struct node *nodes, const __m256i *numbers)
{
	return _mm256_i64gather_epi64((word *)&nodes->cold, _mm256_loadu_si256(numbers), 8);
}

FUNCTION __m256i index_changed(struct node *nodes, long by)
{
	__m256i index = _mm256_insert_epi64(_mm256_setzero_si256(), by, 3);
	return _mm256_i64gather_epi64((word *)&nodes->cold, index, 8);
}

FUNCTION __m256i index_from_caller(struct node *nodes, __m256i index)
{
	return _mm256_i64gather_epi64((word *)&nodes->cold, index, 8);
}

FUNCTION void move(struct copy *to, struct node *from)
{
	void *body = to->body;
	const void *cold = &from->cold;
	__asm__ volatile("movsq" : "+D"(body), "+S"(cold) : : "memory");
}

int main(void)
{
	static struct node nodes[8];
	static struct copy copy;
	__m256i zero = _mm256_setzero_si256(), sum = index_of_zeros(nodes);

	sum = _mm256_add_epi64(sum, index_of_constants(nodes));
	sum = _mm256_add_epi64(sum, index_of_words(nodes));
	sum = _mm256_add_epi64(sum, index_shifted(nodes, &zero));
	sum = _mm256_add_epi64(sum, index_in_loop(nodes, 1));
	sum = _mm256_add_epi64(sum, pointers(nodes, nodes + 1, nodes + 2, nodes + 3));
	sum = _mm256_add_epi64(sum, pointer_to_all(nodes));
	sum = _mm256_add_epi64(sum, index_not_known(nodes, &zero));
	sum = _mm256_add_epi64(sum, index_changed(nodes, 1));
	sum = _mm256_add_epi64(sum, index_from_caller(nodes, zero));
	move(&copy, nodes);
	return (int)_mm256_extract_epi64(sum, 0);
}
