/* Lets the Nth call of a process fail: of the file system, on paths below a folder, or of malloc.
 *
 * Preloaded (LD_PRELOAD). Nothing fails before fault_calls or fault_memory is called. What happened is written to memory
 * that the parent of a forked process shares, since the process may end without a word. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct seen {
    atomic_long calls;
    char failed[PATH_MAX + 64];
};

static struct seen *seen;
static char folder[PATH_MAX];
static long nth;
static int number;
static atomic_int files, memory;

void fault_calls(struct seen *shared, const char *below, long n, int error)
{
    seen = shared;
    snprintf(folder, sizeof folder, "%s", below);
    nth = n;
    number = error;
    atomic_store(&files, 1);
}

void fault_memory(struct seen *shared, long n)
{
    seen = shared;
    nth = n;
    atomic_store(&memory, 1);
}

static int is_below(const char *path)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0 || path[length] == ' ');
}

/* Count a call on a path; return true if it is to fail. */
static int fails(const char *call, const char *path)
{
    if (!is_below(path) || atomic_fetch_add(&seen->calls, 1) + 1 != nth)
        return 0;
    snprintf(seen->failed, sizeof seen->failed, "%s %s", call, path);
    errno = number;
    return 1;
}

static int fails_open_file(const char *call, int file)
{
    char link[64], path[PATH_MAX];
    if (!atomic_load(&files))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return fails(call, path);
}

static int fails_at(const char *call, int file, const char *name)
{
    char whole[2 * PATH_MAX], link[64];
    if (!atomic_load(&files))
        return 0;
    if (name[0] == '/')
        return fails(call, name);
    snprintf(link, sizeof link, file == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, whole, PATH_MAX);
    if (length < 0)
        return 0;
    snprintf(whole + length, PATH_MAX, "/%s", name);
    return fails(call, whole);
}

#define NEXT(name) \
    static __typeof__(name) *real; \
    if (!real) \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define MODE \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest)

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        MODE; \
        NEXT(name); \
        return fails_at(#name, AT_FDCWD, path) ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) \
    { \
        MODE; \
        NEXT(name); \
        return fails_at(#name, at, path) ? -1 : real(at, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

/* A call on an open file, and one on a path: the type, the name, its parameters, and its arguments. */
#define ON_FILE(type, name, parameters, ...) \
    type name parameters \
    { \
        NEXT(name); \
        return fails_open_file(#name, file) ? -1 : real(__VA_ARGS__); \
    }
#define ON_PATH(name, parameters, at, path, ...) \
    int name parameters \
    { \
        NEXT(name); \
        return fails_at(#name, at, path) ? -1 : real(__VA_ARGS__); \
    }

ON_FILE(ssize_t, write, (int file, const void *data, size_t size), file, data, size)
ON_FILE(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), file, data, size, at)
ON_FILE(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), file, data, size, at)
ON_FILE(ssize_t, writev, (int file, const struct iovec *data, int count), file, data, count)
ON_FILE(ssize_t, pwritev, (int file, const struct iovec *data, int count, off_t at), file, data, count, at)
ON_FILE(ssize_t, pwritev64, (int file, const struct iovec *data, int count, off64_t at), file, data, count, at)
ON_FILE(int, fsync, (int file), file)
ON_FILE(int, fdatasync, (int file), file)
ON_FILE(int, ftruncate, (int file, off_t size), file, size)
ON_FILE(int, ftruncate64, (int file, off64_t size), file, size)
ON_FILE(int, fallocate, (int file, int mode, off_t at, off_t size), file, mode, at, size)
ON_FILE(int, fallocate64, (int file, int mode, off64_t at, off64_t size), file, mode, at, size)
ON_FILE(ssize_t, copy_file_range, (int from, off64_t *start, int file, off64_t *at, size_t size, unsigned int flags),
        from, start, file, at, size, flags)
ON_FILE(ssize_t, read, (int file, void *data, size_t size), file, data, size)
ON_FILE(ssize_t, pread, (int file, void *data, size_t size, off_t at), file, data, size, at)
ON_FILE(ssize_t, pread64, (int file, void *data, size_t size, off64_t at), file, data, size, at)
ON_FILE(ssize_t, preadv, (int file, const struct iovec *data, int count, off_t at), file, data, count, at)
ON_FILE(ssize_t, preadv64, (int file, const struct iovec *data, int count, off64_t at), file, data, count, at)

ON_PATH(creat, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)
ON_PATH(creat64, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)
ON_PATH(rename, (const char *from, const char *path), AT_FDCWD, path, from, path)
ON_PATH(renameat, (int old, const char *from, int at, const char *path), at, path, old, from, at, path)
ON_PATH(renameat2, (int old, const char *from, int at, const char *path, unsigned int flags), at, path,
        old, from, at, path, flags)
ON_PATH(link, (const char *from, const char *path), AT_FDCWD, path, from, path)
ON_PATH(linkat, (int old, const char *from, int at, const char *path, int flags), at, path, old, from, at, path, flags)
ON_PATH(unlink, (const char *path), AT_FDCWD, path, path)
ON_PATH(unlinkat, (int at, const char *path, int flags), at, path, at, path, flags)
ON_PATH(mkdir, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)
ON_PATH(mkdirat, (int at, const char *path, mode_t mode), at, path, at, path, mode)
ON_PATH(rmdir, (const char *path), AT_FDCWD, path, path)
ON_PATH(chmod, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static int out_of_memory(void)
{
    if (!atomic_load(&memory) || atomic_fetch_add(&seen->calls, 1) + 1 != nth)
        return 0;
    strcpy(seen->failed, "malloc");
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return out_of_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return out_of_memory() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    return out_of_memory() ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return out_of_memory() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = out_of_memory() ? NULL : __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}
