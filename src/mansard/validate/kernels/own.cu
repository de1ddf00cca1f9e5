// Every warp reads lines of its own again and again, past the L1.
//
// Work: none. Bytes: 16 * UNROLL * iterations a thread.
// Kept by: volatile loads; the sum of all loads goes into the total when the caller gives one.
//
// No two warps ask for one line, and a warp has its words before it asks for the same line again. So
// there are no two requests that a unit before L2 could answer with one.
//
// Macros: UNROLL (half of the rows at most, and divides them), THREADS (a block).

#define LOAD(v, p)                                                            \
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"                \
                 : "=r"((v).x), "=r"((v).y), "=r"((v).z), "=r"((v).w) : "l"(p))

extern "C" __global__ void __launch_bounds__(1024)
own_read(const uint4* in, unsigned* total, int rows, int iterations) {
    const uint4* part = in + (size_t)blockIdx.x * rows * THREADS + threadIdx.x;
    unsigned sum = 0;
    int row = 0;  // moves, or loads could be taken out of the loop
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const uint4* p = part + row * THREADS;
        uint4 v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) LOAD(v[k], p + k * THREADS);
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
        row += UNROLL;
        if (row == rows) row = 0;
    }
    if (total) atomicAdd(total, sum);
}
