// The tensor pipe through the WMMA interface, the only one on Volta: m16n16k16, FP16 to FP32.
//
// `wmma_chain`, fragments in registers. Work: ILP * STEPS * iterations products a warp, 8 192 FLOP
// each. Bytes: two tiles of A and B once a warp. Kept by: volatile statements; D is stored. Which
// lane holds which element is the hardware's affair: tiles are loaded from and stored to memory.
//
// `wmma_product`, a product of matrices as first WMMA programs were written: one warp per tile of D,
// operands straight from global memory, no shared memory, no reuse. Work: 2 * n^3 FLOP. Bytes: 1 024
// read per step of K and warp, from L1 and L2. Kept by: D is stored. It shows what such code
// attains, not a limit of the tensor pipe. A is row-major, B column-major; blocks of 4 x 8 warps.
//
// Macros: ILP, STEPS.

#define LOAD_A(x, p, n)                                                                     \
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 "                       \
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"                                     \
                 : "=r"((x)[0]), "=r"((x)[1]), "=r"((x)[2]), "=r"((x)[3]), "=r"((x)[4]),    \
                   "=r"((x)[5]), "=r"((x)[6]), "=r"((x)[7]) : "l"(p), "r"(n))
#define LOAD_B(x, p, n)                                                                     \
    asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.global.f16 "                       \
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"                                     \
                 : "=r"((x)[0]), "=r"((x)[1]), "=r"((x)[2]), "=r"((x)[3]), "=r"((x)[4]),    \
                   "=r"((x)[5]), "=r"((x)[6]), "=r"((x)[7]) : "l"(p), "r"(n))
#define MULTIPLY(c, x, y)                                                                   \
    asm volatile("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, " \
                 "{%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23}, "     \
                 "{%0,%1,%2,%3,%4,%5,%6,%7};"                                               \
                 : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3]), "+f"((c)[4]),    \
                   "+f"((c)[5]), "+f"((c)[6]), "+f"((c)[7])                                 \
                 : "r"((x)[0]), "r"((x)[1]), "r"((x)[2]), "r"((x)[3]), "r"((x)[4]),         \
                   "r"((x)[5]), "r"((x)[6]), "r"((x)[7]), "r"((y)[0]), "r"((y)[1]),         \
                   "r"((y)[2]), "r"((y)[3]), "r"((y)[4]), "r"((y)[5]), "r"((y)[6]), "r"((y)[7]))
#define STORE_D(p, c, n)                                                                    \
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 "                      \
                 "[%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;" ::"l"(p), "f"((c)[0]), "f"((c)[1]), \
                 "f"((c)[2]), "f"((c)[3]), "f"((c)[4]), "f"((c)[5]), "f"((c)[6]), "f"((c)[7]), \
                 "r"(n) : "memory")

typedef unsigned long long u64;

// `tiles` holds two tiles of A, row-major, then two of B, column-major; D of warp w goes to tile w.
extern "C" __global__ void __launch_bounds__(256)
wmma_chain(const unsigned short* tiles, float* out, int iterations) {
    unsigned a[2][8], b[2][8];
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
        LOAD_A(a[tile], (u64)(tiles + tile * 256), 16);
        LOAD_B(b[tile], (u64)(tiles + 512 + tile * 256), 16);
    }
    float d[ILP][8] = {};
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
#pragma unroll
            for (int i = 0; i < ILP; ++i) MULTIPLY(d[i], a[step % 2], b[(step / 2 + i) % 2]);
        }
    }
#pragma unroll
    for (int i = 1; i < ILP; ++i) {
#pragma unroll
        for (int k = 0; k < 8; ++k) d[0][k] += d[i][k] * (float)(i + 1);
    }
    STORE_D((u64)(out + (size_t)(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 256), d[0], 16);
}

extern "C" __global__ void __launch_bounds__(1024)
wmma_product(const unsigned short* a, const unsigned short* b, float* d, int n) {
    const int row = (blockIdx.x * 4 + threadIdx.x / 256) * 16;
    const int column = (blockIdx.y * 8 + threadIdx.x / 32 % 8) * 16;
    float c[8] = {};
    for (int k = 0; k < n; k += 16) {
        unsigned x[8], y[8];
        LOAD_A(x, (u64)(a + (size_t)row * n + k), n);
        LOAD_B(y, (u64)(b + (size_t)column * n + k), n);
        MULTIPLY(c, x, y);
    }
    STORE_D((u64)(d + (size_t)row * n + column), c, n);
}
