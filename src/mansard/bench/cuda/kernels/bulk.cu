// Device memory through the bulk copy engine (sm_90 and later): long reads, then long writes.
//
// Work: none. Bytes: CHUNK bytes read and CHUNK bytes written per chunk of the array.
// Kept by: asynchronous copies with memory side effects; the caller compares the copied array.
//
// One thread a block moves STAGES chunks into shared memory, waits for them, and writes them out:
// device memory sees few changes between reading and writing, which cost it 8-10 %.
//
// Macros: CHUNK (bytes), STAGES.

typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(32)
bulk_copy(const unsigned char* in, unsigned char* out, u64 chunks) {
    extern __shared__ __align__(128) unsigned char buffer[];
    __shared__ u64 barrier_word;
    if (threadIdx.x != 0) return;
    const unsigned barrier = (unsigned)__cvta_generic_to_shared(&barrier_word);
    const unsigned base = (unsigned)__cvta_generic_to_shared(buffer);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    unsigned parity = 0;
    for (u64 first = (u64)blockIdx.x * STAGES; first < chunks; first += (u64)gridDim.x * STAGES) {
        const int count = chunks - first < STAGES ? (int)(chunks - first) : STAGES;
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                     "r"(count * CHUNK) : "memory");
        for (int stage = 0; stage < count; ++stage) {
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];" ::"r"(base + stage * CHUNK),
                         "l"(in + (first + stage) * CHUNK), "r"(CHUNK), "r"(barrier) : "memory");
        }
        asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], "
                     "%1; @!done bra again; }" ::"r"(barrier), "r"(parity) : "memory");
        parity ^= 1;
        for (int stage = 0; stage < count; ++stage) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                             out + (first + stage) * CHUNK),
                         "r"(base + stage * CHUNK), "r"(CHUNK) : "memory");
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
