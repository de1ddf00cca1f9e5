// Data: word i becomes the splitmix64 hash of (i + seed), so that the host can recompute any part.
//
// Work: integer only. Bytes: 8 written a word. Kept by: stores.
//
// With `doubles`, the hash is made a double in [1, 2): no NaN, no infinity, bounded sums.

typedef unsigned long long u64;

extern "C" __global__ void fill_hash(u64* words, u64 count, u64 seed, int doubles) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (u64)gridDim.x * blockDim.x) {
        u64 x = (i + seed) * 0x9E3779B97F4A7C15ull;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        x ^= x >> 31;
        words[i] = doubles ? (x >> 12) | 0x3FF0000000000000ull : x;
    }
}
