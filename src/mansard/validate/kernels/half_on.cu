// Vector pipe with a part of each warp switched off: the others must not count.
//
// Work: ILP * STEPS * iterations instructions of each thread that is on; FLOP an instruction:
// kernels.toml. Thread t of a warp is on when bit t of `lanes` is set. Bytes: (ILP + 2) operands read
// and one word written a thread. Kept by: the statements are volatile, and every accumulator goes into
// the word that is stored.
//
// BY_BRANCH 0: each statement has a predicate. 1: the threads that are off leave the loop. Compilers
// turn a predicated FP64 or packed half instruction into an unconditional one and a selection, which
// counts for all threads; so only FP32 can be switched off by predicates.
//
// Macros: as vector.cu, and BY_BRANCH.

__device__ __forceinline__ unsigned bits(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned bits(unsigned value) { return value; }
__device__ __forceinline__ unsigned long long bits(double value) {
    return (unsigned long long)__double_as_longlong(value);
}
__device__ __forceinline__ unsigned long long bits(unsigned long long value) { return value; }

#if BY_BRANCH
#define SWITCHED(statement) statement
#else
#define SWITCHED(statement) "{ .reg .pred on; setp.ne.u32 on, %3, 0; @on " statement " }"
#endif

extern "C" __global__ void __launch_bounds__(1024)
half_on_chain(const VALUE* start, const VALUE* factors, const VALUE* addends, HASH* out,
              unsigned mask, unsigned lanes, int iterations) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned on = lanes >> (threadIdx.x % 32) & 1;
    VALUE x[ILP];
#pragma unroll
    for (int i = 0; i < ILP; ++i) x[i] = start[(thread * ILP + i) & mask];
    const VALUE factor = factors[thread & mask];
    const VALUE addend = addends[thread & mask];
    const int count = BY_BRANCH && !on ? 0 : iterations;
#pragma unroll 1
    for (int iteration = 0; iteration < count; ++iteration) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
#pragma unroll
            for (int i = 0; i < ILP; ++i) {
                if (step % 2 == 0) {
                    asm volatile(SWITCHED(EVEN) : "+" CONSTRAINT(x[i])
                                 : CONSTRAINT(factor), CONSTRAINT(addend), "r"(on));
                } else {
                    asm volatile(SWITCHED(ODD) : "+" CONSTRAINT(x[i])
                                 : CONSTRAINT(factor), CONSTRAINT(addend), "r"(on));
                }
            }
        }
    }
    HASH hash = 0;
#pragma unroll
    for (int i = 0; i < ILP; ++i) hash = hash * 31 + bits(x[i]);
    out[thread] = hash;
}
