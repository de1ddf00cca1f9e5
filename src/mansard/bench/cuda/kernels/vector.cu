// Vector pipe: chains of dependent arithmetic on registers.
//
// Work: ILP * STEPS * iterations instructions a thread; FLOP an instruction: kernels.toml (2 for
// an FMA, 4 for a packed pair). Bytes: (ILP + 2) operands read and one word written a thread.
// Kept by: the statements are volatile, and every accumulator goes into the word that is stored.
// An FMA reads two distinct registers (x*x + c): three would meet in one register bank and cost up
// to a third of the FP32 rate. With c in [-1.9, -1.8] the map x -> x*x + c is bounded and chaotic:
// the data keep toggling, and one lost or doubled step changes the result altogether.
//
// Macros: VALUE (type of a register), CONSTRAINT (its asm constraint), HASH (integer as wide), EVEN
// and ODD (statements of even and odd steps; %0 accumulator, %1 factor, %2 addend), ILP, STEPS.

__device__ __forceinline__ unsigned bits(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned bits(unsigned value) { return value; }
__device__ __forceinline__ unsigned long long bits(double value) {
    return (unsigned long long)__double_as_longlong(value);
}
__device__ __forceinline__ unsigned long long bits(unsigned long long value) { return value; }

extern "C" __global__ void __launch_bounds__(1024)
vector_chain(const VALUE* start, const VALUE* factors, const VALUE* addends, HASH* out,
             unsigned mask, int iterations) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    VALUE x[ILP];
#pragma unroll
    for (int i = 0; i < ILP; ++i) x[i] = start[(thread * ILP + i) & mask];
    const VALUE factor = factors[thread & mask];
    const VALUE addend = addends[thread & mask];
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
#pragma unroll
            for (int i = 0; i < ILP; ++i) {
                if (step % 2 == 0) {
                    asm volatile(EVEN : "+" CONSTRAINT(x[i]) : CONSTRAINT(factor), CONSTRAINT(addend));
                } else {
                    asm volatile(ODD : "+" CONSTRAINT(x[i]) : CONSTRAINT(factor), CONSTRAINT(addend));
                }
            }
        }
    }
    HASH hash = 0;
#pragma unroll
    for (int i = 0; i < ILP; ++i) hash = hash * 31 + bits(x[i]);
    out[thread] = hash;
}
