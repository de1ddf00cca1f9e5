// The four FP16 kernels that the Roofline authors went through, in the form of their benchmark:
// a grid-stride loop that loads an element, applies FLOPS / 2 multiply-adds to it, and stores it.
//
// Work: see kernels.toml. Bytes: 2 (half) or 4 (half2) read and written an element.
// Kept by: the element is stored. The statements are not volatile: contraction and index
// arithmetic are what the study compares.
//
// VERSION 1: scalar half. 2: half2, multiply and add apart. 3: half2, fused. 4: as 3, with 32-bit
// indices instead of 64-bit ones.
//
// Macros: VERSION, PAIRS (multiply-adds an element).

#if VERSION == 1
typedef unsigned short element;
#else
typedef unsigned element;
#endif
#if VERSION == 4
typedef unsigned index;
#else
typedef unsigned long long index;
#endif

__device__ __forceinline__ element step(element x, element factor, element addend) {
    element y;
#if VERSION == 1
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(y) : "h"(x), "h"(factor), "h"(addend));
#elif VERSION == 2
    element product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(x), "r"(factor));
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(product), "r"(addend));
#else
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(factor), "r"(addend));
#endif
    return y;
}

extern "C" __global__ void __launch_bounds__(1024)
half_study(element* data, element factor, element addend, index count, int iterations) {
    const index stride = (index)gridDim.x * blockDim.x;
    const index first = (index)blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll 1
        for (index i = first; i < count; i += stride) {
            element x = data[i];
#pragma unroll
            for (int pair = 0; pair < PAIRS; ++pair) x = step(x, factor, addend);
            data[i] = x;
        }
    }
}
