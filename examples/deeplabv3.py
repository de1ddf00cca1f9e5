"""Train DeepLabv3 with a ResNet-50 on random climate images: 16 channels, 768 x 1152, 3 classes.

    python examples/deeplabv3.py [STEPS]
    mansard profile -o step.parquet examples/deeplabv3.py

Knows nothing of Mansard. The step that `mansard demo` shows was recorded by the second line on an
H200. Needs PyTorch, torchvision and a GPU.
"""

import sys

import torch
import torchvision

torch.manual_seed(0)
model = torchvision.models.segmentation.deeplabv3_resnet50(
    weights=None, weights_backbone=None, num_classes=3
)
model.backbone.conv1 = torch.nn.Conv2d(16, 64, 7, 2, 3, bias=False)
model = model.cuda().to(memory_format=torch.channels_last).train()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
images = torch.randn(2, 16, 768, 1152, device="cuda").to(memory_format=torch.channels_last)
labels = torch.randint(0, 3, (2, 768, 1152), device="cuda")

for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 30):
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images)["out"].float(), labels)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
