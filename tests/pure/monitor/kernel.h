/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Instead of libbpf's headers, whose helpers are the kernel's: the monitor's programs
 * as functions of this machine.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bpf.h>

static void step(void);
static void *lookup(const void *map, const void *key);
static long told(const void *record);

static unsigned int cpu;
static unsigned long long clock_ns;

#define __BPF_HELPERS__
#define __BPF_CORE_READ_H__
#undef __always_inline
#define __always_inline inline
#define __noinline static
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#define GET_1(from, a) ((from)->a)
#define GET_2(from, a, b) ((from)->a->b)
#define GET_3(from, a, b, c) ((from)->a->b->c)
#define GET(_1, _2, _3, name, ...) name
#define BPF_CORE_READ(from, ...) \
	((__u64)GET(__VA_ARGS__, GET_3, GET_2, GET_1)(from, __VA_ARGS__))
#define BPF_CORE_READ_STR_INTO(to, ...) (void)0
#define bpf_core_read(...) (void)0
#define bpf_core_field_exists(...) 1
#define bpf_core_enum_value(type, value) (value)
#define bpf_core_enum_value_exists(...) 0
#define bpf_probe_read_kernel_str(to, len, from) strncpy(to, (const char *)(from), len)
#define bpf_probe_read_kernel(to, len, from) memcpy(to, from, len)
#define bpf_map_lookup_elem(map, key) lookup(map, key)
#define bpf_map_update_elem(map, key, value, flags) insert(key, value)
#define bpf_map_delete_elem(map, key) delete (key)
#define bpf_for_each_map_elem(map, look, with, flags) for_each((void *)(look), with)
#define bpf_ringbuf_output(ring, record, len, flags) told(record)
#define bpf_ktime_get_ns() (step(), ++clock_ns)
#define bpf_jiffies64() (clock_ns / 4000000)
#define bpf_get_smp_processor_id() cpu
#define bpf_get_current_task_btf() current_task
#define ATOMIC(operation)                     \
	({                                    \
		step();                       \
		__auto_type was_ = operation; \
		step();                       \
		was_;                         \
	})
#define __sync_fetch_and_add(at, n) ATOMIC(__atomic_fetch_add(at, n, __ATOMIC_SEQ_CST))
#define __sync_lock_test_and_set(at, n) \
	ATOMIC(__atomic_exchange_n(at, n, __ATOMIC_SEQ_CST))
#define __sync_val_compare_and_swap(at, old, new)                               \
	ATOMIC(({                                                               \
		__typeof__(*(at)) is_ = old;                                    \
		__atomic_compare_exchange_n(at, &is_, new, 0, __ATOMIC_SEQ_CST, \
					    __ATOMIC_SEQ_CST);                  \
		is_;                                                            \
	}))

struct task_struct;
static struct task_struct *current_task;

/* The requests and bios that pend. */
static struct {
	unsigned long long address, value;
} pending[8];

static __typeof__(*pending) *of_address(unsigned long long address)
{
	for (int n = 0; n < 8; n++)
		if (pending[n].address == address)
			return &pending[n];
	return NULL;
}

static void *pending_of(unsigned long long address)
{
	__typeof__(*pending) *it = of_address(address);

	return it ? &it->value : NULL;
}

static long insert(const void *address, const void *value)
{
	__typeof__(*pending) *it;

	step();
	if (of_address(*(unsigned long long *)address))
		return -17;
	it = of_address(0);
	if (!it)
		return -7;
	it->address = *(unsigned long long *)address;
	it->value = *(unsigned long long *)value;
	return 0;
}

static long delete (const void *address)
{
	__typeof__(*pending) *it;

	step();
	it = of_address(*(unsigned long long *)address);
	if (!it)
		return -2;
	it->address = 0;
	return 0;
}

static long for_each(long (*look)(const void *map, const unsigned long long *address,
				  void *value, void *with),
		     void *with)
{
	for (int n = 0; n < 8; n++) {
		unsigned long long address;

		step();
		address = pending[n].address;
		if (address)
			look(pending, &address, &pending[n].value, with);
	}
	return 0;
}

/* The compiler calls these before each access (-fsanitize-coverage). */
static void accessed(const void *at, int is_load8);
#define ACCESS(name, is_load8)                                                \
	void __sanitizer_cov_##name(const void *at);                          \
	__attribute__((no_sanitize("coverage"))) void __sanitizer_cov_##name( \
		const void *at)                                               \
	{                                                                     \
		accessed(at, is_load8);                                       \
	}
ACCESS(load1, 0)
ACCESS(load2, 0)
ACCESS(load4, 0)
ACCESS(load8, 1)
ACCESS(load16, 0)
ACCESS(store1, 0)
ACCESS(store2, 0)
ACCESS(store4, 0)
ACCESS(store8, 0)
ACCESS(store16, 0)

#endif
