"""Training steps of DeepLabv3-ResNet50: ``step.py counted`` or ``step.py inside RUN``."""

import sys

import torch
import torchvision

torch.manual_seed(0)
model = torchvision.models.segmentation.deeplabv3_resnet50(
    weights=None, weights_backbone=None, num_classes=3
)
model.backbone.conv1 = torch.nn.Conv2d(16, 64, 7, 2, 3, bias=False)
model = model.cuda().train()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
x = torch.randn(2, 16, 768, 1152, device="cuda")
y = torch.randint(0, 3, (2, 768, 1152), device="cuda")
nvtx, profiler = torch.cuda.nvtx, torch.cuda.cudart()


def step():
    optimizer.zero_grad()
    with nvtx.range("forward"), torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(x)["out"].float(), y)
    with nvtx.range("backward"):
        loss.backward()
    with nvtx.range("optimizer"):
        optimizer.step()


if sys.argv[1] == "inside":
    from mansard.collect import profile

    with profile(sys.argv[2], steps=1, warmup=3) as taken:
        while not taken.done:
            with taken.step():
                step()
else:
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    profiler.cudaProfilerStart()
    step()
    torch.cuda.synchronize()
    profiler.cudaProfilerStop()
