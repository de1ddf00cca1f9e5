"""Four replays of a captured CUDA graph, between cudaProfilerStart and cudaProfilerStop."""

import torch

a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
b = torch.randn_like(a)


def work():
    return (a @ b).relu() + a


stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(3):
        work()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = work()
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStart()
for _ in range(4):
    graph.replay()
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStop()
