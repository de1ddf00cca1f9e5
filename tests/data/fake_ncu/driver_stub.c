/* A stand-in for the driver's launch functions: says what was launched, and whether it was counted. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef unsigned Size;

static int counting;

static int say(const char *what, Size grid, Size shared) {
    printf("%s %u %u %s\n", what, grid, shared, counting ? "counted" : "-");
    fflush(stdout);
    return 0;
}

int cuLaunchKernel(void *f, Size gx, Size gy, Size gz, Size bx, Size by, Size bz, Size shared,
                   void *stream, void **arguments, void **extra) {
    return say("launch", gx, shared);
}

int cuLaunchKernel_ptsz(void *f, Size gx, Size gy, Size gz, Size bx, Size by, Size bz, Size shared,
                        void *stream, void **arguments, void **extra) {
    return say("per thread", gx, shared);
}

int cuLaunchCooperativeKernel(void *f, Size gx, Size gy, Size gz, Size bx, Size by, Size bz,
                              Size shared, void *stream, void **arguments) {
    return say("together", gx, shared);
}

int cuLaunchKernelEx(const uint32_t *config, void *f, void **arguments, void **extra) {
    return say("extended", config[0], config[6]);
}

int cuStreamIsCapturing(void *stream, int *status) {
    *status = (uintptr_t)stream == 9;
    return 0;
}

int cuProfilerStart(void) { return counting++ * 0; }
int cuProfilerStop(void) { return counting-- * 0; }

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status);

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, found, version, flags, 0);
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    *found = NULL;
    if (!strcmp(name, "cuLaunchKernel"))
        *found = flags & 2 ? (void *)cuLaunchKernel_ptsz : (void *)cuLaunchKernel;
    if (!strcmp(name, "cuGetProcAddress"))
        *found = version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
    if (!strcmp(name, "cuProfilerStart")) *found = (void *)cuProfilerStart;
    return *found ? 0 : 500;
}
