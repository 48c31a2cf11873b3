/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The recorder's programs without a kernel: the intervals of disks.
 */
#include "kernel.h"
#define const
#include "../../../monitor/bpf/record.bpf.c"
#undef const

#define MS 1000000ULL

static struct emud_rec_counters counters;
static struct emud_rec_disk rec_disk;
static struct emud_rec intervals[8];
static int recorded, wrong;
int main(void);

static void step(void)
{
}

static void accessed(const void *at, int is_load8)
{
}

static void *lookup(const void *map, const void *key)
{
	if (map == &emud_rec_pending)
		return pending_of(*(const __u64 *)key);
	return map == &emud_rec_counts ? (void *)&counters : &rec_disk;
}

static long told(const void *record)
{
	const struct emud_rec *r = record;

	if (r->kind == EMUD_REC_DISK_BUSY && recorded < 8)
		intervals[recorded++] = *r;
	return 0;
}

static void same(const char *what, long long wanted, long long got)
{
	if (wanted == got)
		return;
	printf("%s: %lld, not %lld\n", what, got, wanted);
	wrong = 1;
}

#define CALL(program, ...) program((unsigned long long[]){__VA_ARGS__})

static struct gendisk disk = {.major = 8, .disk_name = "sda"};
static struct request_queue queue = {.disk = &disk};

static void begin(void)
{
	memset(pending, 0, sizeof(pending));
	memset(&rec_disk, 0, sizeof(rec_disk));
	memset(&counters, 0, sizeof(counters));
	recorded = 0;
	clock_ns = 1000 * MS;
}

static void an_unnoticed_end(void)
{
	struct request rq = {.q = &queue};

	begin();
	CALL(emud_rec_io_start, (__u64)&rq);
	clock_ns += 50 * MS;
	CALL(emud_rec_io_start, (__u64)&rq);
	clock_ns += MS;
	CALL(emud_rec_io_done, (__u64)&rq);
	same("intervals", 1, recorded);
	same("of the second request", 1, (intervals[0].time - intervals[0].value) / MS);
	same("nothing pends", 0, rec_disk.inflight);
}

static void a_bio_in_parts(void)
{
	struct block_device_operations takes_bios = {.submit_bio = (void *)main};
	struct gendisk raid = {.major = 9, .disk_name = "md127", .fops = &takes_bios};
	struct block_device whole = {.bd_disk = &raid};
	struct bio bio = {.bi_bdev = &whole}, part = bio;

	begin();
	CALL(emud_rec_bio_queue, (__u64)&bio);
	CALL(emud_rec_bio_complete, 0, (__u64)&part);
	same("a part", 0, recorded);
	same("without a start", 1, counters.unpaired);
	CALL(emud_rec_bio_complete, 0, (__u64)&bio);
	same("the whole", 1, recorded);
}

int main(void)
{
	an_unnoticed_end();
	a_bio_in_parts();
	return wrong;
}
