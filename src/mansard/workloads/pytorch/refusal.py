"""What cannot be built, and the reason as a user should read it."""

import torch

from mansard.workloads.workload import Configuration

_IMAGE_PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16")
_INFERENCE_PRECISIONS = ("fp32", "tf32", "bf16", "fp8")
_TRAINED = ("deeplab-resnet50", "deeplab-xception", "transformer-train")
#: First compute capability with the data type in its tensor cores.
_NEEDS = {"tf32": (8, 0), "amp-bf16": (8, 0), "bf16": (8, 0), "fp8": (8, 9)}


def why_not(configuration: Configuration) -> str | None:
    """The reason why PyTorch cannot run a configuration on this machine, or ``None``."""
    return _why_not_at_all(configuration) or _why_not_here(configuration)


def _why_not_at_all(configuration: Configuration) -> str | None:
    model, precision = configuration.model, configuration.precision
    image, trained = model.startswith("deeplab"), model in _TRAINED
    if image and precision not in _IMAGE_PRECISIONS:
        return f"DeepLab has no {precision}: its batch norm needs float32, take amp-bf16"
    if not trained and precision not in _INFERENCE_PRECISIONS:
        return f"{precision} keeps float32 weights for training: take bf16 for {model}"
    if image != (configuration.layout != "none"):
        return f"layout {configuration.layout} does not fit {model}: images have one, tokens none"
    if configuration.optimizer == "keras-adam":
        return "keras-adam is an optimizer of Keras: take adam-fused"
    if trained != (configuration.optimizer != "none"):
        return f"optimizer {configuration.optimizer} does not fit {model}"
    if configuration.execution.startswith("xla"):
        return "PyTorch has no XLA here: take compile"
    if configuration.execution == "graph" and _asks_in_between(configuration):
        return "the loss scale waits for the device in each step but with adam-fused: no CUDA graph"
    return None


def _asks_in_between(configuration: Configuration) -> bool:
    # Only the fused Adam takes the scale and the overflow flag as tensors.
    return configuration.precision == "amp-fp16" and configuration.optimizer != "adam-fused"


def _why_not_here(configuration: Configuration) -> str | None:
    try:
        device = torch.device(configuration.device)
    except RuntimeError:
        return f"PyTorch knows no device {configuration.device!r}: take cuda:0 or cpu"
    if device.type == "cpu":
        if configuration.execution == "graph":
            return "a CUDA graph needs a GPU"
        if configuration.precision == "tf32":
            return "TF32 is a format of NVIDIA GPUs: take fp32 on the CPU"
        return None
    if device.type != "cuda":
        return f"no workload was tried on {device.type}: take cuda:0 or cpu"
    if not torch.cuda.is_available():
        return "PyTorch sees no NVIDIA GPU: `mansard doctor` says what is missing"
    if (device.index or 0) >= torch.cuda.device_count():
        return f"there is no {device}: PyTorch sees {torch.cuda.device_count()} GPUs"
    needed = _NEEDS.get(configuration.precision)
    capability = torch.cuda.get_device_capability(device)
    if needed is not None and capability < needed:
        has, wants = (".".join(map(str, each)) for each in (capability, needed))
        return f"{configuration.precision} needs compute capability {wants}, this GPU has {has}"
    return None
