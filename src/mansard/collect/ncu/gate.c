/* Opens ncu's eye for chosen launches alone.
 *
 * ncu chooses launches by name and number, the same numbers for all names. This library, loaded
 * before the others (--preload-library, or LD_PRELOAD), stands between a program and the driver's
 * launch functions: around a chosen launch it calls cuProfilerStart and cuProfilerStop, and ncu
 * with --profile-from-start off counts what lies between. The program's own calls of these two do
 * nothing meanwhile.
 *
 * MANSARD_GATE names a file with a line a shape: grid and block along x, y, z, the dynamic shared
 * memory in bytes, and then the chosen launches of that shape, numbered from 1 in each process.
 * Each opening adds a byte to the file of that name with ".opened".
 *
 * Programs find the driver's functions by dlsym and cuGetProcAddress, so these are stood in front
 * of too. No header of CUDA is needed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#else
#define FIRST_VERSION "GLIBC_2.17"
#endif
#define OPEN __attribute__((visibility("default")))

enum { NUMBERS = 7, SLOTS = 1 << 14, MOST_SHAPES = SLOTS / 2, PER_THREAD = 2 };

typedef void *(*Find)(void *, const char *);

typedef struct {
    uint32_t key[NUMBERS], *wanted;
    uint32_t count, next, seen; /* chosen launches; the next of them; launches so far */
} Shape;

typedef struct { /* as the driver takes it */
    uint32_t grid[3], block[3], shared;
    void *stream, *attributes;
    uint32_t attribute_count;
} Config;

static Shape *table[SLOTS];
static uint32_t shapes;
static int mark = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int depth, plain; /* inside a launch; inside a search of our own */
static int (*start)(void), (*stop)(void), (*is_capturing)(void *, int *);

static Find find(void) { /* the search that comes after this library's */
    static Find real;
    if (!real) real = (Find)dlvsym(RTLD_NEXT, "dlsym", FIRST_VERSION);
    if (!real) real = (Find)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    return real;
}

/* A function of the driver as a program would find it without this library: a profiler may stand
 * in front of the search as well. */
static void *driver(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *found;
    Find first = (Find)dlvsym(RTLD_DEFAULT, "dlsym", FIRST_VERSION);
    if (!library) return NULL;
    plain++;
    found = (first ? first : find())(library, name);
    plain--;
    return found;
}

static Shape **place(const uint32_t *key) { /* where a shape is, or would be */
    uint64_t hash = 14695981039346656037ull;
    for (int i = 0; i < NUMBERS; i++) hash = (hash ^ key[i]) * 1099511628211ull;
    uint32_t at = (uint32_t)(hash >> 20) % SLOTS;
    while (table[at] && memcmp(table[at]->key, key, sizeof table[at]->key)) at = (at + 1) % SLOTS;
    return &table[at];
}

static void add(char *line) {
    uint32_t key[NUMBERS];
    char *end = line;
    for (int i = 0; i < NUMBERS; i++) key[i] = (uint32_t)strtoul(end, &end, 10);
    Shape **slot = place(key);
    if (*slot || shapes == MOST_SHAPES) return;
    Shape *shape = calloc(1, sizeof *shape);
    uint32_t room = (uint32_t)(strlen(end) / 2 + 1); /* a number takes two characters or more */
    if (!shape || !(shape->wanted = malloc(room * sizeof *shape->wanted))) return;
    memcpy(shape->key, key, sizeof key);
    for (char *from = end; shape->count < room; from = end) {
        uint32_t number = (uint32_t)strtoul(from, &end, 10);
        if (end == from) break;
        shape->wanted[shape->count++] = number;
    }
    *slot = shape;
    shapes++;
}

static void set_up(void) {
    const char *path = getenv("MANSARD_GATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char *line = NULL, other[4096];
    size_t size = 0;
    if (!file) return;
    while (getline(&line, &size, file) > 0) add(line);
    free(line);
    fclose(file);
    if ((size_t)snprintf(other, sizeof other, "%s.opened", path) < sizeof other)
        mark = open(other, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    start = (int (*)(void))driver("cuProfilerStart");
    stop = (int (*)(void))driver("cuProfilerStop");
    is_capturing = (int (*)(void *, int *))driver("cuStreamIsCapturing");
}

static int chosen(const uint32_t *key, void *stream) {
    int capturing = 0, found = 0;
    pthread_once(&once, set_up);
    if (!shapes || !start || !stop || depth) return 0;
    /* A launch into a graph is none yet. The old default stream is never captured. */
    if (stream && is_capturing && !is_capturing(stream, &capturing) && capturing) return 0;
    pthread_mutex_lock(&lock);
    Shape *shape = *place(key);
    if (shape) {
        shape->seen++;
        found = shape->next < shape->count && shape->wanted[shape->next] == shape->seen;
        shape->next += (uint32_t)found;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

#define GATED(key, stream, launch)                                        \
    do {                                                                  \
        int result, open_ = chosen(key, stream);                          \
        if (open_) start();                                               \
        if (open_ && mark >= 0 && write(mark, "x", 1) != 1) mark = -1;    \
        depth++;                                                          \
        result = (launch);                                                \
        depth--;                                                          \
        if (open_) stop();                                                \
        return result;                                                    \
    } while (0)

typedef unsigned Size;
typedef int (*Launch)(void *, Size, Size, Size, Size, Size, Size, Size, void *, void **, void **);
typedef int (*Together)(void *, Size, Size, Size, Size, Size, Size, Size, void *, void **);
typedef int (*LaunchEx)(const Config *, void *, void **, void **);

static void *real[10];
enum { LAUNCH, LAUNCH_PT, EX, EX_PT, TOGETHER, TOGETHER_PT, START, STOP, ADDRESS, ADDRESS_2 };

static void *known(int number, const char *name) {
    if (!real[number]) real[number] = driver(name);
    return real[number];
}

#define LAUNCHES(name, number)                                                                   \
    OPEN int name(void *f, Size gx, Size gy, Size gz, Size bx, Size by, Size bz, Size shared,    \
                  void *stream, void **arguments, void **extra) {                                \
        const uint32_t key[] = {gx, gy, gz, bx, by, bz, shared};                                 \
        Launch call = (Launch)known(number, #name);                                              \
        if (!call) return 999;                                                                   \
        GATED(key, stream, call(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra));   \
    }
#define LAUNCHES_TOGETHER(name, number)                                                          \
    OPEN int name(void *f, Size gx, Size gy, Size gz, Size bx, Size by, Size bz, Size shared,    \
                  void *stream, void **arguments) {                                              \
        const uint32_t key[] = {gx, gy, gz, bx, by, bz, shared};                                 \
        Together call = (Together)known(number, #name);                                          \
        if (!call) return 999;                                                                   \
        GATED(key, stream, call(f, gx, gy, gz, bx, by, bz, shared, stream, arguments));          \
    }
#define LAUNCHES_EX(name, number)                                                \
    OPEN int name(const Config *c, void *f, void **arguments, void **extra) {    \
        LaunchEx call = (LaunchEx)known(number, #name);                          \
        if (!call) return 999;                                                   \
        if (!c) return call(c, f, arguments, extra);                             \
        uint32_t key[NUMBERS];                                                   \
        memcpy(key, c->grid, sizeof key);                                        \
        GATED(key, c->stream, call(c, f, arguments, extra));                     \
    }

LAUNCHES(cuLaunchKernel, LAUNCH)
LAUNCHES(cuLaunchKernel_ptsz, LAUNCH_PT)
LAUNCHES_EX(cuLaunchKernelEx, EX)
LAUNCHES_EX(cuLaunchKernelEx_ptsz, EX_PT)
LAUNCHES_TOGETHER(cuLaunchCooperativeKernel, TOGETHER)
LAUNCHES_TOGETHER(cuLaunchCooperativeKernel_ptsz, TOGETHER_PT)

OPEN int cuProfilerStart(void) { return 0; }
OPEN int cuProfilerStop(void) { return 0; }

static void *instead(int number, void *found);
static int number_of(const char *name, int version, uint64_t flags);

OPEN int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    int (*call)(const char *, void **, int, uint64_t) = known(ADDRESS, "cuGetProcAddress");
    int result = call ? call(name, found, version, flags) : 999;
    if (!result && found) *found = instead(number_of(name, version, flags), *found);
    return result;
}

OPEN int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *s) {
    int (*call)(const char *, void **, int, uint64_t, int *) =
        known(ADDRESS_2, "cuGetProcAddress_v2");
    int result = call ? call(name, found, version, flags, s) : 999;
    if (!result && found) *found = instead(number_of(name, version, flags), *found);
    return result;
}

static const struct {
    const char *name;
    void *function;
} names[] = {
    [LAUNCH] = {"cuLaunchKernel", cuLaunchKernel},
    [LAUNCH_PT] = {"cuLaunchKernel_ptsz", cuLaunchKernel_ptsz},
    [EX] = {"cuLaunchKernelEx", cuLaunchKernelEx},
    [EX_PT] = {"cuLaunchKernelEx_ptsz", cuLaunchKernelEx_ptsz},
    [TOGETHER] = {"cuLaunchCooperativeKernel", cuLaunchCooperativeKernel},
    [TOGETHER_PT] = {"cuLaunchCooperativeKernel_ptsz", cuLaunchCooperativeKernel_ptsz},
    [START] = {"cuProfilerStart", cuProfilerStart},
    [STOP] = {"cuProfilerStop", cuProfilerStop},
    [ADDRESS] = {"cuGetProcAddress", cuGetProcAddress},
    [ADDRESS_2] = {"cuGetProcAddress_v2", cuGetProcAddress_v2},
};

/* cuGetProcAddress gives the variant of a version and of a kind of default stream by one name. */
static int number_of(const char *name, int version, uint64_t flags) {
    if (!name || name[0] != 'c' || name[1] != 'u') return -1;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        if (strcmp(name, names[i].name)) continue;
        if (i == ADDRESS && version >= 12000) return ADDRESS_2;
        return (flags & PER_THREAD) && i < START ? i | 1 : i;
    }
    return -1;
}

static void *instead(int number, void *found) {
    if (number < 0 || !found) return found;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (found == names[i].function) return found;
    real[number] = found;
    return names[number].function;
}

/* The last line must stay a jump: what RTLD_NEXT means depends on who calls. */
OPEN __attribute__((optimize("O2"))) void *dlsym(void *handle, const char *name) {
    int number = number_of(name, 0, 0);
    if (number >= 0 && !plain) return instead(number, find()(handle, name));
    return find()(handle, name);
}
