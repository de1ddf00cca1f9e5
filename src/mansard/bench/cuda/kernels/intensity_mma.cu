// The empirical roofline of the tensor pipe: each warp reads 2 KiB and multiplies them N times.
//
// Work: N mma.sync a group and warp, FLOP each: kernels.toml. Bytes: 64 read a group and thread.
// Kept by: volatile statements; a hash of the accumulators is stored.
//
// The 16 words of a group are four A tiles; B is fixed. Eight accumulators take turns.
//
// Macros: PTX (an m16n8k16 instruction with float accumulators), THREADS (a block), POINTS.

template <int N>
__device__ __forceinline__ void sweep(const uint4* in, unsigned* out, unsigned constant,
                                      unsigned long long groups, int iterations) {
    const uint4* part = in + (unsigned long long)blockIdx.x * groups * blockDim.x * 4 + threadIdx.x;
    float d[8][4] = {};
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const uint4* p = part;
        for (unsigned long long group = 0; group < groups; ++group) {
            uint4 a[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a[k].x), "=r"(a[k].y), "=r"(a[k].z), "=r"(a[k].w)
                             : "l"(p + k * THREADS));
            }
            unsigned rest = 0;
#pragma unroll
            for (int k = N; k < 4; ++k) rest ^= a[k].x ^ a[k].y ^ a[k].z ^ a[k].w;
#pragma unroll 2
            for (int first = 0; first < N; first += 8) {
#pragma unroll
                for (int i = 0; i < (N < 8 ? N : 8); ++i) {
                    asm volatile(PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                 : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
                                 : "r"(a[i % 4].x), "r"(a[i % 4].y), "r"(a[i % 4].z),
                                   "r"(a[i % 4].w), "r"(constant ^ rest), "r"(constant));
                }
            }
            p += 4 * THREADS;
        }
    }
    unsigned hash = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int r = 0; r < 4; ++r) hash = hash * 31 + __float_as_uint(d[i][r]);
    }
    if (out) out[blockIdx.x * blockDim.x + threadIdx.x] = hash;
}

#define POINT(N)                                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS)                                        \
    intensity_##N(const uint4* in, unsigned* out, unsigned constant, unsigned long long groups,  \
                  int iterations) {                                                              \
        sweep<N>(in, out, constant, groups, iterations);                                         \
    }
POINTS
