/*
 * bench_log.c - the log beside the disk it is on.
 *
 * What a group of records costs until it is durable, beside write + fdatasync on blocks that were
 * written before (of the records alone, and of as many bytes as the log writes) and on blocks that
 * were only reserved, in turns of a few groups; the log once with a wait for each group and once
 * with the next one appended meanwhile, where single times mean little. And its recovery.
 *
 * Compared is what a group costs where zeros are there already, for the raw files as for the log:
 * writing zeros ahead is nobody's time here (log_ahead.c bounds its rate). So is the first touch of
 * memory: each run opens a new log, whose buffers a virtual machine may have to be lent page by
 * page, while the raw writer has one buffer for all runs; each contestant therefore begins a run
 * with a few groups that do not count. The last column is the one to hold the log to: the raw write
 * and sync of just as many bytes to the same kind of file.
 */
#include <fcntl.h>
#include <time.h>

#include "base/mem.h"
#include "bench_disk.h"
#include "harness.h"
#include "io/log_impl.h"
#include "rt/registry.h"
#include "rt/supervisor.h"

enum {
    RECORDS_MAX = 8000,
    RECORD_SIZE = 200,
    RECORD_SIZE_MAX = 1 << 20,
    PROBE_FILE = 256 << 20,
    LOG_AHEAD = 400 << 20,
};

static struct bench_disk disk;
static struct rt_supervisor *supervisor;

/* Durable groups: the contestants take turns group by group, so they meet the same disk and the
 * same neighbours. Each block is written once, as in a log. */

/* A turn is long enough that its beginning and end, where a log has only one group, do not count
 * for much. */
enum { GROUPS_MAX = 500, PROBE_TURNS = 25, TURN_GROUPS_MIN = 32, GROUPS_FIRST = 4 };
struct shape { /* of a group */
    size_t records;
    size_t record_size;
};
static const struct shape small_records = {RECORDS_MAX, RECORD_SIZE};
enum probe_kind {
    PROBE_ZEROS,
    PROBE_FRAMES,
    PROBE_FALLOCATE,
    PROBE_LOG,       /* these two share a log */
    PROBE_LOG_AHEAD, /* the next group is appended while one is synced */
    PROBES
};
struct probe {
    int fd;
    size_t size; /* of a group */
    uint64_t ns[BENCH_RUNS * GROUPS_MAX];
    size_t ns_count;
    uint64_t run_ns[BENCH_RUNS], run_cpu_ns[BENCH_RUNS]; /* per group */
};

static int by_number(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return first < second ? -1 : first > second;
}

static uint64_t cpu_now_ns(void)
{
    struct timespec now;

    RON_MUST_ZERO(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void probe_path(enum probe_kind kind, char path[64])
{
    (void)snprintf(path, 64, "%s/probe-%d", disk.dir, (int)kind);
}

/* Zeros are written and synced in the pieces that a log has them in. */
static void probe_open(struct probe *probe, enum probe_kind kind)
{
    static uint8_t zero[1 << 20];
    char path[64];

    probe_path(kind, path);
    (void)unlink(path);
    probe->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    RON_ASSERT(probe->fd >= 0);
    if (kind == PROBE_FALLOCATE)
        RON_MUST_ZERO(posix_fallocate(probe->fd, 0, PROBE_FILE));
    for (off_t at = 0; kind != PROBE_FALLOCATE && at < PROBE_FILE; at += (off_t)sizeof(zero)) {
        ssize_t done = pwrite(probe->fd, zero, sizeof(zero), at);

        RON_ASSERT(done == (ssize_t)sizeof(zero));
        RON_MUST_ZERO(fdatasync(probe->fd));
    }
    RON_MUST_ZERO(fsync(probe->fd));
}

static void probe_close(struct probe *probe, enum probe_kind kind)
{
    char path[64];

    probe_path(kind, path);
    RON_MUST_ZERO(close(probe->fd));
    RON_MUST_ZERO(unlink(path));
}

static void probe_group(const struct probe *probe, size_t i)
{
    static uint8_t bytes[RECORDS_MAX * (RECORD_SIZE + 40) + 56];

    _Static_assert(sizeof(bytes) >= RECORD_SIZE_MAX + 96, "a large record fits");
    ssize_t done;

    RON_ASSERT(probe->size <= sizeof(bytes));
    memset(bytes, 0x77, probe->size < 4096 ? probe->size : 4096);
    done = pwrite(probe->fd, bytes, probe->size, (off_t)(i * probe->size));
    RON_ASSERT(done == (ssize_t)probe->size);
    RON_MUST_ZERO(fdatasync(probe->fd));
}

/* The log. Its zeros are ready before the clock starts, like those of the probe. */

static bool remove_log_name(void *context, const char *name, bool is_dir)
{
    char path[160];

    (void)context;
    if (!is_dir) {
        (void)snprintf(path, sizeof(path), "%s/log/%s", disk.dir, name);
        RON_MUST_ZERO(unlink(path));
    }
    return true;
}

static struct io_log_options log_options(uint64_t ahead_bytes, struct shape shape)
{
    return (struct io_log_options){
        .vfs = disk.vfs,
        .dir = "log",
        .name = "bench",
        .kind = 1,
        .segment_bytes = 512 << 20,
        .ahead_bytes = ahead_bytes,
        .ahead_bytes_per_s = 999000000,
        .group_bytes = (uint32_t)(shape.records * (shape.record_size + IO_FRAME_HEAD_SIZE)),
        .linger_us = 1000000, /* a group closes when it is full */
        .direct = true,
        .supervisor = supervisor};
}

static uint64_t append_group(struct io_log *log, struct shape shape) RON_BLOCKS
{
    static const uint8_t bytes[RECORD_SIZE_MAX] = {1, 2, 3};
    static struct ron_slice bodies[RECORDS_MAX];
    const struct rt_deadline deadline = rt_deadline_after_ms(60000);
    struct ron_errinfo info = {0};
    uint64_t index = 0;
    size_t count = 0;

    for (size_t i = 0; i < shape.records; i++)
        bodies[i] = ron_slice_of(bytes, shape.record_size);
    for (size_t done = 0; done < shape.records; done += count)
        must(io_log_append_many(log, 1, bodies + done, shape.records - done, deadline, &count,
                                &index, &info),
             &info);
    return index;
}

static void wait_for(struct io_log *log, uint64_t index) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    must(io_log_wait(log, index, rt_deadline_after_ms(60000), &info), &info);
}

static struct io_log *log_open(uint64_t ahead_bytes, struct shape shape,
                               struct io_log_recovery *recovery) RON_BLOCKS
{
    const struct io_log_options options = log_options(ahead_bytes, shape);
    struct ron_errinfo info = {0};
    struct io_log *log = NULL;

    must(io_log_open(&options, &log, recovery, &info), &info);
    return log;
}

static void log_close(struct io_log *log) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    must(io_log_close(log, rt_deadline_after_ms(60000), &info), &info);
}

/* A log with more zeros than a run needs, which then adds none: each byte is written twice in the
 * end, but the raw probe's zeros are not on the clock either. */
static struct io_log *log_open_zeroed(struct shape shape) RON_BLOCKS
{
    struct io_log_recovery recovery;
    struct io_log *log = log_open(LOG_AHEAD, shape, &recovery);

    while (io_log_get_stats(log).zeroed_bytes < LOG_AHEAD - (2 << 20))
        (void)usleep(1000);
    log_close(log);
    return log_open(LOG_AHEAD / 8, shape, &recovery);
}

static void log_remove(void) RON_BLOCKS
{
    struct ron_errinfo info = {0};

    must(io_vfs_list(disk.vfs, "log", remove_log_name, NULL, &info), &info);
}

/* A few groups of each contestant, then of the next. */
static void probe_turn(struct probe *probe, enum probe_kind kind, struct io_log *log,
                       struct shape shape, unsigned run, size_t first, size_t end) RON_BLOCKS
{
    const uint64_t cpu_ns = cpu_now_ns();
    uint64_t before_ns = bench_now_ns(), index = 0;

    for (size_t i = first; i < end; i++) {
        uint64_t now_ns;

        if (kind < PROBE_LOG)
            probe_group(probe, GROUPS_FIRST + i);
        else
            index = append_group(log, shape);
        if (kind == PROBE_LOG || (kind == PROBE_LOG_AHEAD && i + 1 == end))
            wait_for(log, index);
        now_ns = bench_now_ns();
        probe->ns[probe->ns_count++] = now_ns - before_ns;
        probe->run_ns[run] += now_ns - before_ns;
        before_ns = now_ns;
    }
    probe->run_cpu_ns[run] += cpu_now_ns() - cpu_ns;
}

/* Groups that do not count, for each contestant: its memory has been used then. */
static void probe_first(const struct probe probes[PROBES], struct io_log *log,
                        struct shape shape) RON_BLOCKS
{
    for (size_t i = 0; i < GROUPS_FIRST; i++) {
        for (unsigned p = 0; p < PROBE_LOG; p++)
            probe_group(&probes[p], i);
        wait_for(log, append_group(log, shape));
    }
}

/* Returns how often the log synced for what counts. */
static uint64_t probe_run(struct probe probes[PROBES], unsigned run, struct shape shape,
                          size_t groups) RON_BLOCKS
{
    const size_t per_turn = groups / PROBE_TURNS;
    const size_t at_once = per_turn > TURN_GROUPS_MIN ? per_turn : TURN_GROUPS_MIN;
    struct io_log *log = log_open_zeroed(shape);
    uint64_t syncs;

    for (unsigned p = 0; p < PROBE_LOG; p++)
        probe_open(&probes[p], (enum probe_kind)p);
    probe_first(probes, log, shape);
    for (size_t first = 0; first < groups; first += at_once) {
        const size_t end = first + at_once < groups ? first + at_once : groups;

        for (unsigned turn = 0; turn < PROBES; turn++) {
            unsigned p = (turn + run + (unsigned)(first / at_once)) % PROBES;

            probe_turn(&probes[p], (enum probe_kind)p, log, shape, run, first, end);
        }
    }
    for (unsigned p = 0; p < PROBES; p++) {
        probes[p].run_ns[run] /= groups;
        probes[p].run_cpu_ns[run] /= groups;
    }
    RON_ASSERT(io_log_get_stats(log).zeroed_bytes == 0);
    syncs = io_log_get_stats(log).syncs_count - GROUPS_FIRST;
    for (unsigned p = 0; p < PROBE_LOG; p++)
        probe_close(&probes[p], (enum probe_kind)p);
    log_close(log);
    log_remove();
    return syncs;
}

/* Open a log of small records, read all of it. */
static void bench_recovery(const struct bench_options *options) RON_BLOCKS
{
    const size_t groups = options->quick ? 10 : 125;
    struct io_log_recovery recovery;
    struct io_log *log = log_open(LOG_AHEAD / 8, small_records, &recovery);
    uint64_t run_ns[BENCH_RUNS], cpu_ns[BENCH_RUNS];

    for (size_t i = 0; i < groups; i++)
        wait_for(log, append_group(log, small_records));
    log_close(log);
    for (unsigned run = 0; run < BENCH_RUNS; run++) {
        const struct io_log_options own = log_options(LOG_AHEAD / 8, small_records);
        const uint64_t begin_ns = bench_now_ns(), begin_cpu_ns = cpu_now_ns();
        struct ron_errinfo info = {0};

        /* Without its tasks: what they do then is not recovery. */
        must(log_open_idle(&own, &log, &recovery, &info), &info);
        run_ns[run] = bench_now_ns() - begin_ns;
        cpu_ns[run] = cpu_now_ns() - begin_cpu_ns;
        log_destroy(log);
    }
    log_remove();
    RON_ASSERT(recovery.records_count == groups * RECORDS_MAX);
    qsort(run_ns, BENCH_RUNS, sizeof(uint64_t), by_number);
    qsort(cpu_ns, BENCH_RUNS, sizeof(uint64_t), by_number);
    printf(
        "\nrecovery of %llu records of %d bytes: median %.1f ms (%.1f .. %.1f), %.2f M records/s; "
        "of processor time %.1f ms (%.1f .. %.1f), %.2f M records/s\n",
        (unsigned long long)recovery.records_count, RECORD_SIZE,
        (double)run_ns[BENCH_RUNS / 2] / 1e6, (double)run_ns[0] / 1e6,
        (double)run_ns[BENCH_RUNS - 1] / 1e6,
        (double)recovery.records_count * 1e3 / (double)run_ns[BENCH_RUNS / 2],
        (double)cpu_ns[BENCH_RUNS / 2] / 1e6, (double)cpu_ns[0] / 1e6,
        (double)cpu_ns[BENCH_RUNS - 1] / 1e6,
        (double)recovery.records_count * 1e3 / (double)cpu_ns[BENCH_RUNS / 2]);
    (void)fflush(stdout);
}

static void bench_probe(const struct bench_options *options, struct shape shape) RON_BLOCKS
{
    static const char *const names[PROBES] = {"raw, zeros written", "raw, the log's bytes",
                                              "raw, fallocate only", "log, append and wait",
                                              "log, next meanwhile"};
    static struct probe probes[PROBES];
    const size_t frames_size = shape.records * (shape.record_size + IO_FRAME_HEAD_SIZE) +
                               IO_COMMIT_SIZE;
    const size_t size = shape.records * shape.record_size;
    const size_t groups_max = PROBE_FILE / 2 / frames_size - GROUPS_FIRST;
    size_t groups = groups_max < GROUPS_MAX ? groups_max : GROUPS_MAX;
    uint64_t syncs = 0;

    if (options->quick)
        groups = groups < 20 ? groups : 20;
    memset(probes, 0, sizeof(probes));
    for (unsigned p = 0; p < PROBES; p++)
        probes[p].size = p == PROBE_FRAMES ? frames_size : size;
    for (unsigned run = 0; run < BENCH_RUNS; run++)
        syncs += probe_run(probes, run, shape, groups);
    printf(
        "\ndurable groups (raw: write + fdatasync) of %zu records of %zu bytes, %zu groups a run; "
        "the log: %.2f syncs a group\n",
        shape.records, shape.record_size, groups,
        (double)syncs / (double)(2 * groups * BENCH_RUNS));
    printf("  %-22s %12s %19s %12s %12s %12s %9s %12s %8s %6s %11s\n", "", "mean us", "min .. max",
           "median us", "p99 us", "longest us", "cpu us", "records/s", "MB/s", "ratio",
           "same bytes");
    for (unsigned p = 0; p < PROBES; p++) {
        struct probe *probe = &probes[p];
        double mean;

        qsort(probe->run_ns, BENCH_RUNS, sizeof(uint64_t), by_number);
        qsort(probe->run_cpu_ns, BENCH_RUNS, sizeof(uint64_t), by_number);
        qsort(probe->ns, probe->ns_count, sizeof(uint64_t), by_number);
        mean = (double)probe->run_ns[BENCH_RUNS / 2];
        printf(
            "  %-22s %12.1f %8.1f .. %7.1f %12.1f %12.1f %12.1f %9.1f %12.0f %8.1f %6.2f %11.2f\n",
            names[p], mean / 1e3, (double)probe->run_ns[0] / 1e3,
            (double)probe->run_ns[BENCH_RUNS - 1] / 1e3,
            (double)probe->ns[probe->ns_count / 2] / 1e3,
            (double)probe->ns[probe->ns_count * 99 / 100] / 1e3,
            (double)probe->ns[probe->ns_count - 1] / 1e3,
            (double)probe->run_cpu_ns[BENCH_RUNS / 2] / 1e3, (double)shape.records * 1e9 / mean,
            (double)size * 1e3 / mean, (double)probes[PROBE_ZEROS].run_ns[BENCH_RUNS / 2] / mean,
            (double)probes[PROBE_FRAMES].run_ns[BENCH_RUNS / 2] / mean);
    }
    (void)fflush(stdout);
}

int main(int argc, char **argv) RON_BLOCKS
{
    static const struct shape groups[] = {
        {1, RECORD_SIZE}, {64, RECORD_SIZE}, {RECORDS_MAX, RECORD_SIZE}, {1, RECORD_SIZE_MAX}};
    const struct rt_supervisor_options root = {.name = "root", .owner = "bench", .tasks_max = 4};
    struct bench_options options;
    struct ron_errinfo info = {0};

    if (!bench_begin(argc, argv, &options))
        return 2;
    rt_init();
    must(rt_supervisor_new(&root, &supervisor, &info), &info);
    bench_disk_begin(&disk);
    for (size_t i = 0; i < RON_ARRAY_COUNT(groups); i++)
        bench_probe(&options, groups[i]);
    bench_recovery(&options);
    must(rt_supervisor_stop(supervisor, rt_deadline_after_ms(20000), &info), &info);
    supervisor = rt_supervisor_free(supervisor);
    bench_disk_end(&disk);
    return 0;
}
