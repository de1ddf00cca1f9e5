// Tensor pipe through warp-level mma.sync: operands and accumulators in registers.
//
// Work: ILP * STEPS * iterations instructions a warp, 2*M*N*K FLOP each. Bytes: the operand tiles
// once a warp, one word written a thread. Kept by: volatile statements, and a hash of every
// accumulator is stored. ILP accumulators are independent. The A tiles take turns, so the operands
// toggle; when the caller makes tiles 2 and 3 the negatives of 0 and 1, sums stay bounded.
//
// Thread t reads record t & mask: A_TILES fragments of A, then B_TILES of B, register by register.
//
// Macros: PTX (instruction), OPERAND and OPERAND_C (type and constraint of an operand register), SUM
// and SUM_C (of an accumulator register), HASH (integer as wide as an accumulator register), A_REGS,
// B_REGS, D_REGS, A_TILES, B_TILES, ILP, STEPS, and SCALES for block-scaled types (all scales 1).

#define OPERAND_IN(x) OPERAND_C(x)
#define SUM_IO(x) "+" SUM_C(x)
#define A4 OPERAND_IN(a[0]), OPERAND_IN(a[1]), OPERAND_IN(a[2]), OPERAND_IN(a[3])
#define A8 A4, OPERAND_IN(a[4]), OPERAND_IN(a[5]), OPERAND_IN(a[6]), OPERAND_IN(a[7])
#define B2 OPERAND_IN(b[0]), OPERAND_IN(b[1])
#define B4 B2, OPERAND_IN(b[2]), OPERAND_IN(b[3])
#define D2 SUM_IO(d[0]), SUM_IO(d[1])
#define D4 D2, SUM_IO(d[2]), SUM_IO(d[3])

__device__ __forceinline__ void multiply(SUM (&d)[D_REGS], const OPERAND (&a)[A_REGS],
                                         const OPERAND (&b)[B_REGS]) {
#if defined(SCALES)
    // Scale factors: four e8m0 of 127 (or ue4m3 of 0x38) are 1.0 each.
    asm volatile(PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, "
                     "{%10}, {0, 0}, {%10}, {0, 0};" : D4 : A4, B2, "r"(SCALES));
#elif A_REGS == 8
    asm volatile(PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
                     "{%0,%1,%2,%3};" : D4 : A8, B4);
#elif A_REGS == 4 && D_REGS == 4
    asm volatile(PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : D4 : A4, B2);
#elif A_REGS == 4
    asm volatile(PTX " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : D2 : A4, B2);
#elif A_REGS == 2 && D_REGS == 4
    asm volatile(PTX " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : D4 : OPERAND_IN(a[0]), OPERAND_IN(a[1]), OPERAND_IN(b[0]));
#elif A_REGS == 2
    asm volatile(PTX " {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : D2 : OPERAND_IN(a[0]), OPERAND_IN(a[1]), OPERAND_IN(b[0]));
#else
    asm volatile(PTX " {%0,%1}, {%2}, {%3}, {%0,%1};" : D2 : OPERAND_IN(a[0]), OPERAND_IN(b[0]));
#endif
}

__device__ __forceinline__ unsigned bits(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned bits(unsigned value) { return value; }
__device__ __forceinline__ unsigned long long bits(double value) {
    return (unsigned long long)__double_as_longlong(value);
}

extern "C" __global__ void __launch_bounds__(256)
mma_chain(const OPERAND* operands, HASH* out, unsigned mask, int iterations) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned first = (thread & mask) * (A_TILES * A_REGS + B_TILES * B_REGS);
    OPERAND a[A_TILES][A_REGS];
    OPERAND b[B_TILES][B_REGS];
#pragma unroll
    for (int i = 0; i < A_TILES * A_REGS; ++i) {
        a[i / A_REGS][i % A_REGS] = operands[first + i];
    }
#pragma unroll
    for (int i = 0; i < B_TILES * B_REGS; ++i) {
        b[i / B_REGS][i % B_REGS] = operands[first + A_TILES * A_REGS + i];
    }
    SUM d[ILP][D_REGS] = {};
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
#pragma unroll
            for (int i = 0; i < ILP; ++i) {
                multiply(d[i], a[step % A_TILES], b[(step + i) % B_TILES]);
            }
        }
    }
    HASH hash = 0;
#pragma unroll
    for (int i = 0; i < ILP; ++i) {
#pragma unroll
        for (int r = 0; r < D_REGS; ++r) hash = hash * 31 + bits(d[i][r]);
    }
    out[thread] = hash;
}
