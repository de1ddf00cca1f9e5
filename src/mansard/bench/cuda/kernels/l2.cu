// L2: every warp passes over its own part of a working set until a time is over, and counts.
//
// Work: none. Bytes: 512 * rows a pass and warp and stream (a copy reads and writes).
// Kept by: volatile accesses; the sum of all loads goes into the total when the caller gives one (it
// does for the check, with a span of 0: one pass).
//
// Why not equal work for all: some SMs (12 of the 132 of an H200) are served a third faster, it seems
// because fewer share a port to the crossbar. With equal work they would stand idle at the end.
// Loads and stores pass L1 (.cg, and stores always do). No warp reads what another warp reads, so no
// unit between L1 and L2 can answer two requests with one.
//
// Macros: UNROLL (divides rows), THREADS (a block).

#define LOAD(v, p)                                                            \
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"                \
                 : "=r"((v).x), "=r"((v).y), "=r"((v).z), "=r"((v).w) : "l"(p))
#define STORE(p, v)                                                           \
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"((v).x), "r"((v).y), \
                 "r"((v).z), "r"((v).w) : "memory")

typedef unsigned long long u64;

__device__ __forceinline__ u64 now() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__device__ __forceinline__ void count(unsigned* passes, unsigned done) {
    if (threadIdx.x % 32 == 0) passes[(blockIdx.x * THREADS + threadIdx.x) / 32] = done;
}

extern "C" __global__ void __launch_bounds__(1024)
l2_read(const uint4* in, uint4* out, unsigned* total, unsigned* passes, int rows, u64 span) {
    const uint4* part = in + (size_t)blockIdx.x * rows * THREADS + threadIdx.x;
    const u64 start = now();
    unsigned sum = 0, done = 0;
#pragma unroll 1
    do {
        const uint4* p = part;
#pragma unroll 1
        for (int row = 0; row < rows; row += UNROLL) {
            uint4 v[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) LOAD(v[k], p + k * THREADS);
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
            p += UNROLL * THREADS;
        }
        ++done;
    } while (now() - start < span);
    count(passes, done);
    if (total) atomicAdd(total, sum);
}

extern "C" __global__ void __launch_bounds__(1024)
l2_write(const uint4* in, uint4* out, unsigned* total, unsigned* passes, int rows, u64 span) {
    uint4* part = out + (size_t)blockIdx.x * rows * THREADS + threadIdx.x;
    const uint4 v = in[(size_t)blockIdx.x * THREADS + threadIdx.x];
    const u64 start = now();
    unsigned done = 0;
#pragma unroll 1
    do {
        uint4* q = part;
#pragma unroll 1
        for (int row = 0; row < rows; row += UNROLL) {
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) STORE(q + k * THREADS, v);
            q += UNROLL * THREADS;
        }
        ++done;
    } while (now() - start < span);
    count(passes, done);
}

extern "C" __global__ void __launch_bounds__(1024)
l2_copy(const uint4* in, uint4* out, unsigned* total, unsigned* passes, int rows, u64 span) {
    const size_t first = (size_t)blockIdx.x * rows * THREADS + threadIdx.x;
    const u64 start = now();
    unsigned done = 0;
#pragma unroll 1
    do {
        const uint4* p = in + first;
        uint4* q = out + first;
#pragma unroll 1
        for (int row = 0; row < rows; row += UNROLL) {
            uint4 v[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) LOAD(v[k], p + k * THREADS);
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) STORE(q + k * THREADS, v[k]);
            p += UNROLL * THREADS;
            q += UNROLL * THREADS;
        }
        ++done;
    } while (now() - start < span);
    count(passes, done);
}
