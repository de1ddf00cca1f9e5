/* Types of the CUDA runtime that CUPTI's callback header names. */
#pragma once
#include <cuda.h>
typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct { unsigned int x, y, z; } dim3;
enum cudaMemcpyKind { cudaMemcpyHostToHost = 0 };
