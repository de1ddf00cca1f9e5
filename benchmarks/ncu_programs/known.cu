// Kernels of known work in seven configurations: known [ROUNDS [EXIT_CODE [MORE_MB]]]; a code below
// 0 aborts; MORE_MB of device memory are held besides.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

template <int N>
__global__ void fma_chain(float *out) {
    float a = threadIdx.x, b = 1.0001f;
    for (int i = 0; i < N; i++) a = a * b + 0.5f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

// Names without mangling, and one shape: does a profiler tell them apart?
extern "C" __global__ void c_adds(float *out) {
    float a = threadIdx.x, b = out[0];
    for (int i = 0; i < 64; i++) a = a + b;
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

extern "C" __global__ void c_muls(float *out) {
    float a = threadIdx.x, b = out[0];
    for (int i = 0; i < 128; i++) a = a * b;
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

__global__ void copy(float4 *to, const float4 *from, size_t n) {
    size_t stride = gridDim.x * (size_t)blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += stride)
        to[i] = from[i];
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3, code = argc > 2 ? atoi(argv[2]) : 0;
    size_t bytes = 256u << 20;
    float *out;
    float4 *a, *b;
    void *more = nullptr;
    if (argc > 3 && cudaMalloc(&more, (size_t)atoi(argv[3]) << 20) == cudaSuccess)
        cudaMemset(more, 0, (size_t)atoi(argv[3]) << 20);
    cudaMalloc(&out, 1 << 22);
    cudaMalloc(&a, bytes);
    cudaMalloc(&b, bytes);
    cudaMemset(out, 0, 1 << 22);
    cudaMemset(a, 1, bytes);
    for (int round = 0; round < rounds; round++) {
        fma_chain<1024><<<128, 256>>>(out);
        fma_chain<2048><<<128, 256>>>(out);
        c_adds<<<128, 256>>>(out);
        c_muls<<<128, 256>>>(out);
        fma_chain<1024><<<256, 256>>>(out);
        fma_chain<1024><<<128, 256, 4096>>>(out);
        copy<<<2048, 256>>>(b, a, bytes / sizeof(float4));
    }
    cudaError_t error = cudaDeviceSynchronize();
    printf("program says %s\n", cudaGetErrorString(error));
    if (code < 0) abort();
    return code;
}
