// Tensor pipe through tcgen05.mma (sm_100a and relatives): operands in shared, sums in tensor memory.
//
// Work: STAGES * 4 * iterations instructions a block, 2*128*256*K FLOP each. Bytes: the operand
// tiles (STAGES * 48 KiB) once a block, one word written a thread. Kept by: volatile statements; a
// hash of every accumulator is read back from tensor memory and stored.
//
// A stage is 128 bytes of K: 256 rows of B, then 128 rows of A, K-major, in the 128-byte swizzle.
// One thread issues; it runs at most one iteration ahead of the tensor core. Stages take turns on
// SETS accumulators of 256 columns each. Block-scaled types have one accumulator and keep their
// scale factors, all 1, in the columns after it.
//
// Macros: PTX (instruction up to its operands), IDESC (instruction descriptor), SETS, STAGES, and
// SCALES for block-scaled types.

typedef unsigned long long u64;

__device__ __forceinline__ u64 descriptor(unsigned address) {
    return (u64)((address & 0x3FFFF) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 46) |
           (1ull << 62);
}

__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 " @!done bra again; }" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void read_32_columns(unsigned (&v)[32], unsigned address) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,"
                 "%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, [%32];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]),
                   "=r"(v[6]), "=r"(v[7]), "=r"(v[8]), "=r"(v[9]), "=r"(v[10]), "=r"(v[11]),
                   "=r"(v[12]), "=r"(v[13]), "=r"(v[14]), "=r"(v[15]), "=r"(v[16]), "=r"(v[17]),
                   "=r"(v[18]), "=r"(v[19]), "=r"(v[20]), "=r"(v[21]), "=r"(v[22]), "=r"(v[23]),
                   "=r"(v[24]), "=r"(v[25]), "=r"(v[26]), "=r"(v[27]), "=r"(v[28]), "=r"(v[29]),
                   "=r"(v[30]), "=r"(v[31])
                 : "r"(address));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(128, 1)
tcgen05_chain(const uint4* tiles, unsigned* out, int iterations) {
    extern __shared__ unsigned char raw[];
    __shared__ u64 barriers[2];
    __shared__ unsigned allocated;
    const unsigned start = (unsigned)__cvta_generic_to_shared(raw);
    const unsigned base = (start + 1023) & ~1023u;
    uint4* shared = (uint4*)(raw + (base - start));
    for (unsigned i = threadIdx.x; i < STAGES * 3072; i += 128) shared[i] = tiles[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");

    const unsigned barrier = (unsigned)__cvta_generic_to_shared(barriers);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier + 8) : "memory");
    }
    if (threadIdx.x < 32) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 512;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(&allocated)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const unsigned tensor = allocated;
#if defined(SCALES)
    const unsigned lanes = tensor + ((threadIdx.x / 32) << 21);
    for (unsigned column = 256; column < 320; ++column) {
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(lanes + column),
                     "r"(SCALES) : "memory");
    }
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#endif
    if (threadIdx.x == 0) {
        const u64 b = descriptor(base);
        const u64 a = descriptor(base + STAGES * 32768);
#pragma unroll 1
        for (int iteration = 0; iteration < iterations; ++iteration) {
            if (iteration >= 2) wait(barrier + 8 * (iteration & 1), ((iteration >> 1) - 1) & 1);
#pragma unroll
            for (int stage = 0; stage < STAGES; ++stage) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const int add = iteration > 0 || stage >= SETS || k > 0;
                    asm volatile("{ .reg .pred add; setp.ne.b32 add, %4, 0; " PTX
                                 " [%0], %1, %2, %3,"
#if defined(SCALES)
                                 " [%5], [%6],"
#endif
                                 " add; }" ::"r"(tensor + (stage % SETS) * 256),
                                 "l"(a + stage * 1024 + k * 2), "l"(b + stage * 2048 + k * 2),
                                 "r"(IDESC), "r"(add)
#if defined(SCALES)
                                 , "r"(tensor + 256), "r"(tensor + 288)
#endif
                                 : "memory");
                }
            }
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                         ::"r"(barrier + 8 * (iteration & 1)) : "memory");
        }
        if (iterations > 1) wait(barrier + 8 * (iterations & 1), ((iterations - 2) >> 1) & 1);
        wait(barrier + 8 * ((iterations - 1) & 1), ((iterations - 1) >> 1) & 1);
    }
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    unsigned hash = 0;
#pragma unroll 1
    for (unsigned column = 0; column < SETS * 256; column += 32) {
        unsigned values[32];
        read_32_columns(values, tensor + ((threadIdx.x / 32) << 21) + column);
#pragma unroll
        for (int i = 0; i < 32; ++i) hash = hash * 31 + values[i];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = hash;
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    if (threadIdx.x < 32) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 512;" ::"r"(tensor));
    }
}
