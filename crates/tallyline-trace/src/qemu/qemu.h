/* What is used of QEMU's plugin interface, versions 1 and later. Declared here because not every
 * distribution packages QEMU's header. What differs between the versions:
 *   - `qemu_plugin_insn_data` returned a pointer up to version 2, and copies from version 3 on;
 *   - QEMU 9 and later refuse plugins that say version 1, QEMU 8 and earlier those that say 2. */
#ifndef TALLYLINE_QEMU_H
#define TALLYLINE_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

/* The start of `struct qemu_info_t`; what follows is not looked at. */
struct host {
	const char *target_name;
	struct {
		int min;
		int current;
	} version;
	bool system_emulation;
};

enum { CALLBACK_WITHOUT_REGISTERS = 0 };
enum { MEMORY_READ_OR_WRITE = 3 };

typedef void (*on_plugin)(qemu_plugin_id_t, void *);
typedef void (*on_translation)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*on_execution)(unsigned int cpu, void *);
typedef void (*on_memory)(unsigned int cpu, qemu_plugin_meminfo_t, uint64_t address, void *);
typedef void (*on_system_call)(qemu_plugin_id_t, unsigned int cpu, int64_t number, uint64_t, uint64_t,
			       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
typedef void (*on_system_return)(qemu_plugin_id_t, unsigned int cpu, int64_t number, int64_t result);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, on_translation);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, on_execution, int flags, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_memory, int flags, int which, void *);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, on_system_call);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, on_system_return);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, on_plugin, void *);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
/* Declared without its parameters: they depend on the version. */
extern char qemu_plugin_insn_data[];

#endif
