// The two halves of L2: each SM times every line of its own part, then reads only its near or far
// lines.
//
// Work: none. Bytes: `partition_time` 4 a line; `partition_read` 128 * UNROLL * groups * iterations
// a group of 8 lanes. Kept by: volatile loads, stored or added to the total when
// the caller gives one.
//
// One block an SM. Part s of the set belongs to the SM with identifier s, whichever block runs
// there: how near a line is depends on the SM. `partition_read` expects, per SM, a list of line
// numbers within its part, padded by repetition to `count` lines.
//
// Macros: UNROLL.

__device__ __forceinline__ unsigned sm() {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

// The set must be zero: each address is the line plus the value of the load before, which the
// compiler cannot know, so loads follow each other. A line's time is that from one value to the next.
extern "C" __global__ void partition_time(const unsigned* set, unsigned lines, unsigned* cycles) {
    __shared__ unsigned sink;
    if (threadIdx.x != 0) return;
    const unsigned* part = set + (unsigned long long)sm() * lines * 32;
    const unsigned address = (unsigned)__cvta_generic_to_shared(&sink);
    unsigned value = 0;
    for (int repeat = 0; repeat < 2; ++repeat) {  // the first round brings the lines into L2
        unsigned before = (unsigned)clock64();
#pragma unroll 1
        for (unsigned line = 0; line < lines; ++line) {
            asm volatile("ld.global.cg.u32 %0, [%1];"
                         : "=r"(value) : "l"(part + line * 32 + value) : "memory");
            // Instructions issue in order: the store waits for the value, the clock for the store.
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
            const unsigned now = (unsigned)clock64();
            cycles[(unsigned long long)sm() * lines + line] = now - before;
            before = now;
        }
    }
}

extern "C" __global__ void __launch_bounds__(1024, 1)
partition_read(const uint4* set, const unsigned short* lists, unsigned* total, unsigned lines,
               unsigned count, int iterations) {
    extern __shared__ unsigned short list[];
    const unsigned id = sm();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) list[i] = lists[id * count + i];
    __syncthreads();
    const uint4* part = set + (unsigned long long)id * lines * 8 + threadIdx.x % 8;
    unsigned sum = 0;
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll 1
        for (unsigned i = threadIdx.x / 8; i < count; i += UNROLL * 128) {
            uint4 v[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) {
                asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                             : "l"(part + list[i + k * 128] * 8u));
            }
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
        }
    }
    if (total) atomicAdd(total, sum);
}
