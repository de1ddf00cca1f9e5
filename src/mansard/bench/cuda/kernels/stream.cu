// Device memory: read, write, copy and triad of arrays many times larger than L2, each word once.
//
// Work: none, triad: 2 FLOP a double. Bytes: 16 * UNROLL a thread, tile and stream; read and write
// have one stream, copy two (one read, one written), triad three (two read).
// Kept by: volatile loads whose sum goes into the total when the caller gives one; stores
// go to distinct addresses. Loads do not allocate in L1 and are all issued before their first use;
// stores stream (.cs), which leaves L2 to the reads: on an H200 worth 5 % of a copy.
// Each row of the grid is a pass over the arrays.
//
// Macros: UNROLL, THREADS.

#define LOAD(v, p)                                                                    \
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"           \
                 : "=r"((v).x), "=r"((v).y), "=r"((v).z), "=r"((v).w) : "l"(p))

#define STORE(p, v)                                                                   \
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"((v).x),  \
                 "r"((v).y), "r"((v).z), "r"((v).w) : "memory")

typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(THREADS)
stream_read(const uint4* a, const uint4* b, uint4* c, unsigned* total, u64 tiles) {
    unsigned sum = 0;
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const uint4* p = a + tile * (UNROLL * THREADS) + threadIdx.x;
        uint4 v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) LOAD(v[k], p + k * THREADS);
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
    if (total) atomicAdd(total, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS)
stream_write(const uint4* a, const uint4* b, uint4* c, unsigned* total, u64 tiles) {
    const uint4 v = a[threadIdx.x];
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        uint4* q = c + tile * (UNROLL * THREADS) + threadIdx.x;
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) STORE(q + k * THREADS, v);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
stream_copy(const uint4* a, const uint4* b, uint4* c, unsigned* total, u64 tiles) {
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const u64 first = tile * (UNROLL * THREADS) + threadIdx.x;
        uint4 v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) LOAD(v[k], a + first + k * THREADS);
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) STORE(c + first + k * THREADS, v[k]);
    }
}

// Two doubles of a plus half of two doubles of b, in place of a.
__device__ __forceinline__ void add_half(uint4& a, const uint4& b) {
    const double x = __fma_rn(0.5, __hiloint2double(b.y, b.x), __hiloint2double(a.y, a.x));
    const double y = __fma_rn(0.5, __hiloint2double(b.w, b.z), __hiloint2double(a.w, a.z));
    a = make_uint4(__double2loint(x), __double2hiint(x), __double2loint(y), __double2hiint(y));
}

extern "C" __global__ void __launch_bounds__(THREADS)
stream_triad(const uint4* a, const uint4* b, uint4* c, unsigned* total, u64 tiles) {
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const u64 first = tile * (UNROLL * THREADS) + threadIdx.x;
        uint4 v[UNROLL], w[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            LOAD(v[k], a + first + k * THREADS);
            LOAD(w[k], b + first + k * THREADS);
        }
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) {
            add_half(v[k], w[k]);
            STORE(c + first + k * THREADS, v[k]);
        }
    }
}
