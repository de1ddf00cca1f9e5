"""A push/pop range around a backward pass, which PyTorch launches from another thread."""

import torch

net = torch.nn.Sequential(
    torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)
).cuda()
x = torch.randn(256, 512, device="cuda")
net(x).sum().backward()
torch.cuda.synchronize()
with torch.cuda.nvtx.range("forward"):
    loss = net(x).sum()
with torch.cuda.nvtx.range("backward"):
    loss.backward()
torch.cuda.synchronize()
