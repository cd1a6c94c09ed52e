#include "table.h"
#include "file.h"

enum { TABLE_ROOM = 32 << 10 };

static uint8_t table[TABLE_ROOM];
static uint8_t *table_at;
static uint64_t table_first;
static uint32_t table_count;
static uint64_t table_end;

void table_flush(void)
{
	uint8_t *at = table + BLOCK_HEAD;

	if (table_count) {
		at = put_u64(at, table_first);
		put_u32(at, table_count);
		file_append("INSN", table, table_at - table);
	}
	table_at = table + BLOCK_HEAD + 12;
	table_count = 0;
	table_end = 0;
}

void table_add(uint64_t id, uint64_t pc, size_t size, bool atomic)
{
	if (table_count && (id != table_first + table_count || table_at + 16 > table + TABLE_ROOM))
		table_flush();
	if (!table_count)
		table_first = id;
	table_at = put_varint(table_at, zigzag((int64_t)(pc - table_end)) << 1 | atomic);
	*table_at++ = size;
	table_end = pc + size;
	table_count++;
}
