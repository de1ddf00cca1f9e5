/* Records what a program runs on the GPU, without changing the program.
 *
 * The CUDA driver loads this library when CUDA_INJECTION64_PATH names it, and calls
 * InitializeInjection. It asks CUPTI for activity records and writes each kind to a file of its
 * own, byte by byte as CUPTI gives it. A pointer to a text is replaced by a hash of the text; the
 * texts themselves are in names.bin. What the records mean is known to trace/layout.py alone,
 * which also says, in MANSARD_TRACE_LAYOUT, how long each kind is and where its pointers are:
 * "kind:bytes:offset,offset;kind:bytes:;...".
 *
 * No header of CUDA is needed: the few types and functions are declared here.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 4 << 20, MOST_KINDS = 64, MOST_BYTES = 1024, MOST_TEXTS = 4, SEEN = 1 << 16 };

typedef void (*Request)(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void (*Complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

static int (*register_callbacks)(Request, Complete);
static int (*enable)(int kind);
static int (*flush_all)(uint32_t flag);
static int (*flush_period)(uint32_t milliseconds);
static int (*next_record)(uint8_t *buffer, size_t valid, uint8_t **record);

static struct {
    uint32_t bytes;
    int texts;
    uint32_t offset[MOST_TEXTS];
    FILE *file;
} kinds[MOST_KINDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *names;
static FILE *faults; /* what went wrong, a line each, for the reader */
static uint64_t seen[SEEN]; /* hashes of texts in names.bin; one that finds no room is repeated */
static uint64_t left;       /* bytes that may still be written */
static int ended;

static uint64_t hash_of(const char *text) { /* FNV-1a */
    uint64_t hash = 14695981039346656037ull;
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 1099511628211ull;
    return hash;
}

static void put(FILE *file, const void *data, size_t bytes) {
    if (bytes > left || fwrite(data, 1, bytes, file) != bytes) {
        if (left) fputs(bytes > left ? "limit\n" : "disk\n", faults);
        left = 0;
        return;
    }
    left -= bytes;
}

static uint64_t text_number(const char *text) {
    if (!text) return 0;
    uint64_t hash = hash_of(text);
    uint64_t *place = &seen[hash % SEEN];
    if (*place != hash) {
        *place = hash;
        uint32_t length = (uint32_t)strlen(text);
        put(names, &hash, sizeof hash);
        put(names, &length, sizeof length);
        put(names, text, length);
    }
    return hash;
}

static void lend(uint8_t **buffer, size_t *size, size_t *most_records) {
    /* CUPTI asks for 8-byte alignment, which malloc gives. */
    *buffer = malloc(BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *most_records = 0;
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    uint8_t *record = NULL;
    uint8_t copy[MOST_BYTES];
    pthread_mutex_lock(&lock);
    while (!ended && left && valid && next_record(buffer, valid, &record) == 0) {
        uint32_t kind;
        memcpy(&kind, record, sizeof kind);
        if (kind >= MOST_KINDS || !kinds[kind].file) continue;
        uint32_t bytes = kinds[kind].bytes;
        if (record + bytes > buffer + valid) continue; /* an older, shorter record */
        memcpy(copy, record, bytes);
        for (int i = 0; i < kinds[kind].texts; i++) {
            const char *text;
            memcpy(&text, copy + kinds[kind].offset[i], sizeof text);
            uint64_t number = text_number(text);
            memcpy(copy + kinds[kind].offset[i], &number, sizeof number);
        }
        put(kinds[kind].file, copy, bytes);
    }
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void finish(void) {
    flush_all(1); /* forced: also buffers that are not full */
    pthread_mutex_lock(&lock);
    ended = 1;
    for (int kind = 0; kind < MOST_KINDS; kind++)
        if (kinds[kind].file) fclose(kinds[kind].file);
    fclose(names);
    fclose(faults);
    pthread_mutex_unlock(&lock);
}

static FILE *open_in(const char *folder, const char *name) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return NULL;
    return fopen(path, "we");
}

static int open_files(const char *folder, char *layout) {
    names = open_in(folder, "names.bin");
    faults = open_in(folder, "faults.txt");
    if (!names || !faults) return 0;
    for (char *rest, *part = strtok_r(layout, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        char *end;
        unsigned long kind = strtoul(part, &end, 10), bytes = strtoul(end + 1, &end, 10);
        char name[32];
        snprintf(name, sizeof name, "%lu.bin", kind);
        if (kind >= MOST_KINDS || bytes > MOST_BYTES) return 0;
        kinds[kind].bytes = (uint32_t)bytes;
        while (*end == ':' || *end == ',') {
            if (end[1] == '\0' || kinds[kind].texts == MOST_TEXTS) break;
            kinds[kind].offset[kinds[kind].texts++] = (uint32_t)strtoul(end + 1, &end, 10);
        }
        kinds[kind].file = open_in(folder, name);
        if (!kinds[kind].file) return 0;
    }
    return 1;
}

static const char *start(const char *root, const char *cupti, char *layout) {
    char folder[4096];
    if (snprintf(folder, sizeof folder, "%s/%ld", root, (long)getpid()) >= (int)sizeof folder)
        return "name";
    if (mkdir(folder, 0700) || !open_files(folder, layout)) return "folder";
    void *library = dlopen(cupti, RTLD_NOW | RTLD_GLOBAL);
    if (!library) return "cupti";
    *(void **)&register_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks");
    *(void **)&enable = dlsym(library, "cuptiActivityEnable");
    *(void **)&flush_all = dlsym(library, "cuptiActivityFlushAll");
    *(void **)&flush_period = dlsym(library, "cuptiActivityFlushPeriod");
    *(void **)&next_record = dlsym(library, "cuptiActivityGetNextRecord");
    if (!register_callbacks || !enable || !flush_all || !next_record) return "cupti";
    if (register_callbacks(lend, take)) return "callbacks";
    /* What a program that crashes has done until then is written all the same. */
    if (flush_period) flush_period(1000);
    for (int kind = 0; kind < MOST_KINDS; kind++) {
        int code = kinds[kind].file ? enable(kind) : 0;
        if (code) fprintf(faults, "kind %d: %d\n", kind, code);
    }
    atexit(finish);
    return NULL;
}

/* Always 1: a program must not fail because it could not be traced. */
int InitializeInjection(void) {
    static int started;
    const char *root = getenv("MANSARD_TRACE_FOLDER"), *cupti = getenv("MANSARD_TRACE_CUPTI");
    const char *layout = getenv("MANSARD_TRACE_LAYOUT"), *most = getenv("MANSARD_TRACE_BYTES");
    if (started++ || !root || !cupti || !layout || !most) return 1;
    char *copy = strdup(layout);
    left = strtoull(most, NULL, 10);
    const char *fault = copy ? start(root, cupti, copy) : "memory";
    if (fault && faults) fprintf(faults, "start: %s\n", fault), fflush(faults);
    free(copy);
    return 1;
}
