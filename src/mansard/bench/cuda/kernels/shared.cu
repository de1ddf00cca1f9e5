// Shared memory: 128-bit accesses of consecutive threads, free of bank conflicts.
//
// Work: none. Bytes: BYTES * PASSES * iterations a block, through shared memory only; BYTES once
// from device memory. Kept by: volatile loads whose sum goes into the total when the caller gives
// one (it does for the check); volatile stores, of which the tile is read back. Loads of one address
// would be merged, so each pass of a thread starts 32 words further in its row.
//
// Macros: BYTES (of the tile), PASSES, THREADS (a block).

#define ROW (16 * THREADS)
#define ROWS (BYTES / ROW)

extern "C" __global__ void __launch_bounds__(1024)
shared_read(const uint4* in, unsigned* total, int iterations) {
    extern __shared__ uint4 tile[];
    for (unsigned i = threadIdx.x; i < BYTES / 16; i += blockDim.x) {
        tile[i] = in[blockIdx.x * (BYTES / 16) + i];
    }
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(tile);
    unsigned offset = threadIdx.x * 16;
    unsigned sum = 0;
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const unsigned address = base + offset;
            offset = (offset + 512) % ROW;
            uint4 v[ROWS];
#pragma unroll
            for (int row = 0; row < ROWS; ++row) {
                asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[row].x), "=r"(v[row].y), "=r"(v[row].z), "=r"(v[row].w)
                             : "r"(address + row * ROW));
            }
#pragma unroll
            for (int row = 0; row < ROWS; ++row) {
                sum += v[row].x + v[row].y + v[row].z + v[row].w;
            }
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
        for (int access = 0; access < PASSES * ROWS; ++access) {
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                             base + access % ROWS * ROW),
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
