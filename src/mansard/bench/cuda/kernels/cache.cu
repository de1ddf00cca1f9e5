// Caches: every block reads its own part of a working set again and again.
//
// Work: none. Bytes: 16 * rows * iterations a thread.
// Kept by: volatile loads; the sum of all loads goes into the total when the caller gives one (it
// does for the check).
//
// A row is one 16-byte word of each thread, so a warp touches 512 consecutive bytes. Part b of the
// set is rows * blockDim.x words at b * rows * blockDim.x: no block reads what another block reads,
// so no unit between L1 and L2 can answer two blocks with one request.
//
// Macros: OPERATOR (ca: may stay in L1; cg: passes L1), UNROLL (divides rows), THREADS (a block), and
// ROWS when the number of rows is to be compiled in.

#if defined(ROWS)
#define COUNT ROWS
#define LOOP _Pragma("unroll")
#else
#define COUNT rows
#define LOOP _Pragma("unroll 1")
#endif

#define LOAD(v, p)                                                            \
    asm volatile("ld.global." OPERATOR ".v4.u32 {%0, %1, %2, %3}, [%4];"      \
                 : "=r"((v).x), "=r"((v).y), "=r"((v).z), "=r"((v).w) : "l"(p))

extern "C" __global__ void __launch_bounds__(1024)
cache_read(const uint4* in, unsigned* total, int rows, int iterations) {
    const uint4* part = in + (size_t)blockIdx.x * rows * THREADS;
    unsigned place = threadIdx.x;  // moves within the row, or loads could be taken out of the loop
    unsigned sum = 0;
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const uint4* p = part + place;
        place = (place + 32) % THREADS;
        LOOP for (int row = 0; row < COUNT; row += UNROLL) {
            uint4 v[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) LOAD(v[k], p + k * THREADS);
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
            p += UNROLL * THREADS;
        }
    }
    if (total) atomicAdd(total, sum);
}

// The same, but the parts take turns: after 67 iterations every block has read 67 parts. Blocks that
// have drifted apart then ask for the same lines at the same time, and units before L2 may merge
// their requests: what arrives at the SMs is more than what L2 delivers.
extern "C" __global__ void __launch_bounds__(1024)
cache_read_turns(const uint4* in, unsigned* total, int rows, int iterations) {
    unsigned part = blockIdx.x;
    unsigned sum = 0;
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const uint4* p = in + (size_t)part * rows * blockDim.x + threadIdx.x;
#pragma unroll 1
        for (int row = 0; row < rows; row += UNROLL) {
            uint4 v[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) LOAD(v[k], p + k * THREADS);
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
            p += UNROLL * THREADS;
        }
        part += 67;
        if (part >= gridDim.x) part -= gridDim.x;
    }
    if (total) atomicAdd(total, sum);
}
