// Bulk copies of the TMA unit from global into shared memory, past the tag stage of the L1 (sm_90 and
// later).
//
// Work: none. Bytes: CHUNK * chunks read from device memory; bulk_read delivers each chunk to one
// block, bulk_multicast to both blocks of a cluster.
// Kept by: the copies are volatile; a word of each chunk goes into the total when the caller gives one.
//
// One copy is under way at a time: its bytes matter here, not its speed. A block's barrier counts one
// arrival, that of its own thread 0, which also announces the bytes of the phase; so a phase can
// not end before its block has announced it, however early the bytes come.
//
// Macros: CHUNK (bytes of a copy; a multiple of 128, below 2^20).

typedef unsigned long long u64;

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void make_barrier(unsigned barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void announce(unsigned barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(CHUNK)
                 : "memory");
}

__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 " @!done bra again; }" ::"r"(barrier), "r"(parity) : "memory");
}

// What was read from the landing place is ordered before what the TMA unit writes into it next.
__device__ __forceinline__ void release_landing() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(32) bulk_read(const unsigned char* in, unsigned* total,
                                                           u64 chunks) {
    extern __shared__ __align__(128) unsigned char landing[];
    __shared__ __align__(8) u64 barrier_word;
    const unsigned barrier = shared_address(&barrier_word);
    const unsigned target = shared_address(landing);
    if (threadIdx.x != 0) return;
    make_barrier(barrier);
    unsigned sum = 0, parity = 0;
#pragma unroll 1
    for (u64 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        announce(barrier);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(target), "l"(in + chunk * CHUNK), "r"(CHUNK),
                     "r"(barrier) : "memory");
        wait(barrier, parity);
        parity ^= 1;
        sum += *(volatile unsigned*)landing;
        release_landing();
    }
    if (total) atomicAdd(total, sum);
}

#if defined(MULTICAST)
__device__ __forceinline__ void meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The first block of each cluster of two reads for both. They meet before each copy: both have
// announced it then, and neither still reads what came before. They meet at the end, since a block must not
// leave while data may be on its way into it.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(32)
bulk_multicast(const unsigned char* in, unsigned* total, u64 chunks) {
    extern __shared__ __align__(128) unsigned char landing[];
    __shared__ __align__(8) u64 barrier_word;
    const unsigned barrier = shared_address(&barrier_word);
    const unsigned target = shared_address(landing);
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) make_barrier(barrier);
    __syncwarp();
    unsigned sum = 0, parity = 0;
#pragma unroll 1
    for (u64 chunk = blockIdx.x / 2; chunk < chunks; chunk += gridDim.x / 2) {
        if (threadIdx.x == 0) announce(barrier);
        __syncwarp();
        meet();
        if (threadIdx.x == 0 && rank == 0) {
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(target),
                         "l"(in + chunk * CHUNK), "r"(CHUNK), "r"(barrier), "h"((unsigned short)3)
                         : "memory");
        }
        __syncwarp();
        wait(barrier, parity);
        parity ^= 1;
        sum += ((volatile unsigned*)landing)[threadIdx.x];
        release_landing();
    }
    __syncwarp();
    meet();
    if (total) atomicAdd(total, sum);
}
#endif
