/* Counts what a process allocates, for tests/bench/counts: a library for LD_PRELOAD.
 *
 * COUNTS_FILE names a file of three 64-bit words: the process that counts, its allocations, their
 * bytes. The first process that maps the file counts; its children do not. With COUNTS_ADD, each
 * flush of a file makes 25 allocations more, and every second flush one file look-up: the check of
 * the check. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static _Atomic uint64_t *counts;
static int adds;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("COUNTS_FILE");
    adds = getenv("COUNTS_ADD") != NULL;
    int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    _Atomic uint64_t *mapped = mmap(NULL, 24, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    uint64_t nobody = 0;
    if (mapped != MAP_FAILED && atomic_compare_exchange_strong(&mapped[0], &nobody, getpid())) counts = mapped;
}

static void *counted(void *allocation, size_t bytes) {
    if (counts) {
        atomic_fetch_add_explicit(&counts[1], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&counts[2], bytes, memory_order_relaxed);
    }
    return allocation;
}

void *malloc(size_t size) { return counted(__libc_malloc(size), size); }
void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size), count * size); }
void *realloc(void *old, size_t size) { return counted(__libc_realloc(old, size), size); }
void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size), size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **result, size_t alignment, size_t size) {
    *result = memalign(alignment, size);
    return *result ? 0 : 12; /* ENOMEM */
}

static void add(void) {
    static void *volatile kept;
    static _Atomic unsigned flushes;
    if (!adds) return;
    for (int i = 0; i < 25; i++) free(kept = malloc(16 + i));
    if (atomic_fetch_add(&flushes, 1) % 2) access("/an/added/look-up", F_OK);
}
int fsync(int fd) { add(); return syscall(SYS_fsync, fd); }
int fdatasync(int fd) { add(); return syscall(SYS_fdatasync, fd); }
