// Shared memory: 128-bit accesses of consecutive threads, free of bank conflicts.
//
// Work: none. Bytes: 16 * ACCESSES * iterations a thread, through shared memory only; BYTES once
// from device memory a block. Kept by: volatile loads whose sum goes into the total when
// the caller gives one (it does for the check); volatile stores, of which one word is read back.
//
// Macros: BYTES (a power of two), ACCESSES (multiple of 4), THREADS (a block).

extern "C" __global__ void __launch_bounds__(1024)
shared_read(const uint4* in, unsigned* total, int iterations) {
    extern __shared__ uint4 tile[];
    for (unsigned i = threadIdx.x; i < BYTES / 16; i += blockDim.x) {
        tile[i] = in[blockIdx.x * (BYTES / 16) + i];
    }
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(tile);
    const unsigned offset = threadIdx.x * 16;
    unsigned sum = 0;
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int access = 0; access < ACCESSES; access += 4) {
            uint4 v[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                             : "r"(base + offset + (access + k) * 16 * THREADS % BYTES));
            }
#pragma unroll
            for (int k = 0; k < 4; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
        }
    }
    if (total) atomicAdd(total, sum);
}

extern "C" __global__ void __launch_bounds__(1024)
shared_write(const uint4* in, unsigned* total, int iterations) {
    extern __shared__ uint4 tile[];
    const uint4 v = in[blockIdx.x * blockDim.x + threadIdx.x];
    const unsigned base = (unsigned)__cvta_generic_to_shared(tile) + threadIdx.x * 16;
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int access = 0; access < ACCESSES; ++access) {
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                             base + access * 16 * THREADS % BYTES),
                         "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
        }
    }
    __syncthreads();
    unsigned sum = 0;
    for (unsigned i = threadIdx.x; i < BYTES / 16; i += blockDim.x) {
        sum += tile[i].x + tile[i].y + tile[i].z + tile[i].w;
    }
    if (total) atomicAdd(total, sum);
}
