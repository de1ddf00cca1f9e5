// kinds [MORE]: two replays of a graph of three kernels, then one range of two kernels between
// cudaProfilerStart and cudaProfilerStop, named "pair" where NVTX is there. MORE makes each kernel so
// many times as long.
//
// The graph comes first: Nsight Compute profiles nothing after cudaProfilerStop, and a range may
// hold no graph.
#include <cstdio>
#include <cstdlib>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#define nvtxRangePushA(name)
#define nvtxRangePop()
#endif

__global__ void adds(float *out, int n) {
    float a = threadIdx.x;
    for (int i = 0; i < n; i++) a = a + 1.5f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

int main(int argc, char **argv) {
    int more = argc > 1 ? atoi(argv[1]) : 1;
    float *out;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaMalloc(&out, 1 << 20);
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 3; i++) adds<<<64, 128, 0, stream>>>(out, 100 * more);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphLaunch(ready, stream);
    cudaGraphLaunch(ready, stream);
    cudaStreamSynchronize(stream);
    cudaProfilerStart();
    nvtxRangePushA("pair");
    adds<<<128, 128, 0, stream>>>(out, 10 * more);
    adds<<<128, 128, 0, stream>>>(out, 20 * more);
    cudaStreamSynchronize(stream);
    nvtxRangePop();
    cudaProfilerStop();
    printf("program says %s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
