// Latency: one thread follows a chain of addresses, each load waits for the one before.
//
// Work: none. Bytes: 4 a step. Kept by: each address comes from the load before it; the last one is
// stored. The chain visits every line once, in the order of a full-period linear congruential
// sequence over a power of two of lines (multiplier % 4 == 1, increment odd), so that neither a
// prefetcher nor a row of device memory helps.
//
// Macros: OPERATOR (ca, cg).

extern "C" __global__ void chase_link(unsigned* words, unsigned lines, unsigned words_per_line,
                                      unsigned multiplier) {
    for (unsigned line = blockIdx.x * blockDim.x + threadIdx.x; line < lines;
         line += gridDim.x * blockDim.x) {
        const unsigned next = (line * multiplier + 12345u) & (lines - 1);
        words[(unsigned long long)line * words_per_line] = next * words_per_line;
    }
}

extern "C" __global__ void chase_global(const unsigned* words, unsigned steps,
                                        unsigned long long* cycles, unsigned* last) {
    unsigned at = *last;  // where the launch before ended: lines that no cache holds by chance
    for (unsigned step = 0; step < steps / 8; ++step) {
        asm volatile("ld.global." OPERATOR ".u32 %0, [%1];" : "=r"(at) : "l"(words + at) : "memory");
    }
    const long long start = clock64();
#pragma unroll 1
    for (unsigned step = 0; step < steps; step += 16) {
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            asm volatile("ld.global." OPERATOR ".u32 %0, [%1];"
                         : "=r"(at) : "l"(words + at) : "memory");
        }
    }
    *last = at;
    *cycles = (unsigned long long)(clock64() - start);
}

extern "C" __global__ void chase_shared(const unsigned* words, unsigned steps,
                                        unsigned long long* cycles, unsigned* last) {
    __shared__ unsigned tile[4096];
    for (unsigned i = 0; i < 4096; ++i) tile[i] = ((i * 1029u + 12345u) & 4095u) * 4;
    const unsigned base = (unsigned)__cvta_generic_to_shared(tile);
    unsigned at = 0;
    const long long start = clock64();
#pragma unroll 1
    for (unsigned step = 0; step < steps; step += 16) {
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            asm volatile("ld.shared.u32 %0, [%1];" : "=r"(at) : "r"(base + at) : "memory");
        }
    }
    *last = at;
    *cycles = (unsigned long long)(clock64() - start);
}
