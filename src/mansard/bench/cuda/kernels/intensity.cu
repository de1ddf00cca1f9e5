// The empirical roofline: each group of 64 bytes is read and then worked on N times, for growing N.
//
// Work: N instructions a group and thread; FLOP each: kernels.toml. Bytes: 64 read a group.
// Kept by: volatile loads and statements; every word goes into the total when the caller gives one.
//
// N instructions are dealt over the WORDS registers of the group in turn, so a register is a chain
// of N / WORDS and there are up to WORDS chains: enough to hide the latency of the pipe.
//
// Macros: VALUE, CONSTRAINT, STATEMENT (%0 word, %1 constant), THREADS (a block), POINTS (the list
// of N as POINT(1) POINT(2) ...).

#define WORDS (64 / (int)sizeof(VALUE))

__device__ __forceinline__ unsigned fold(unsigned long long v) { return (unsigned)(v ^ (v >> 32)); }
__device__ __forceinline__ unsigned bits(float v) { return __float_as_uint(v); }
__device__ __forceinline__ unsigned bits(unsigned v) { return v; }
__device__ __forceinline__ unsigned bits(double v) {
    return fold((unsigned long long)__double_as_longlong(v));
}

template <int N>
__device__ __forceinline__ void sweep(const uint4* in, unsigned* total, VALUE constant,
                                      unsigned long long groups, int iterations) {
    // The block's part of the set: `groups` rows of one group a thread, read as four 16-byte words.
    const uint4* part = in + (unsigned long long)blockIdx.x * groups * blockDim.x * 4 + threadIdx.x;
    unsigned sum = 0;
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const uint4* p = part;
        for (unsigned long long group = 0; group < groups; ++group) {
            union { uint4 v[4]; VALUE x[WORDS]; } data;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(data.v[k].x), "=r"(data.v[k].y), "=r"(data.v[k].z),
                               "=r"(data.v[k].w)
                             : "l"(p + k * THREADS));
            }
#pragma unroll
            for (int i = 0; i < (N < WORDS ? N : WORDS); ++i) {
                asm volatile(STATEMENT : "+" CONSTRAINT(data.x[i]) : CONSTRAINT(constant));
            }
#pragma unroll 4
            for (int round = 1; round < N / WORDS; ++round) {
#pragma unroll
                for (int i = 0; i < WORDS; ++i) {
                    asm volatile(STATEMENT : "+" CONSTRAINT(data.x[i]) : CONSTRAINT(constant));
                }
            }
#pragma unroll
            for (int i = 0; i < WORDS; ++i) sum += bits(data.x[i]);
            p += 4 * THREADS;
        }
    }
    if (total) atomicAdd(total, sum);
}

#define POINT(N)                                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS)                                        \
    intensity_##N(const uint4* in, unsigned* total, VALUE constant, unsigned long long groups,       \
                  int iterations) {                                                              \
        sweep<N>(in, total, constant, groups, iterations);                                       \
    }
POINTS
