// One range between cudaProfilerStart and cudaProfilerStop, and two replays of a graph of 3 kernels.
#include <cstdio>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

__global__ void adds(float *out, int n) {
    float a = threadIdx.x;
    for (int i = 0; i < n; i++) a = a + 1.5f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

int main() {
    float *out;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaMalloc(&out, 1 << 20);
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 3; i++) adds<<<64, 128, 0, stream>>>(out, 100);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    cudaProfilerStart();
    adds<<<128, 128, 0, stream>>>(out, 10);
    adds<<<128, 128, 0, stream>>>(out, 20);
    cudaStreamSynchronize(stream);
    cudaProfilerStop();
    cudaGraphLaunch(ready, stream);
    cudaGraphLaunch(ready, stream);
    printf("program says %s\n", cudaGetErrorString(cudaStreamSynchronize(stream)));
    return 0;
}
