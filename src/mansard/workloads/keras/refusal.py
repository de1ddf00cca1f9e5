"""What cannot be built in Keras on any machine, and the reason as a user should read it."""

from mansard.workloads.workload import Configuration

#: Ways to run a step that each backend has here, the usual one first.
EXECUTIONS = {
    "keras-jax": ("xla", "xla-gradients"),
    "keras-tensorflow": ("xla", "graph", "eager"),
    "keras-torch": ("eager",),
}
#: First compute capability with the data type in its tensor cores.
_NEEDS = {"tf32": (8, 0), "amp-bf16": (8, 0)}


def why_not(configuration: Configuration) -> str | None:
    """The reason why Keras cannot run a configuration, or ``None``."""
    model, precision = configuration.model, configuration.precision
    if model != "deeplab-resnet50":
        return f"{model} is not written in Keras: take the framework torch"
    if precision not in ("fp32", "tf32", "amp-fp16", "amp-bf16"):
        return f"DeepLab has no {precision}: its batch norm needs float32, take amp-bf16"
    if configuration.layout == "none":
        return "images have a layout: take nhwc, which Keras prefers, or nchw"
    if configuration.optimizer != "keras-adam":
        return f"{configuration.optimizer} is an optimizer of PyTorch: take keras-adam"
    possible = EXECUTIONS[configuration.framework]
    if configuration.execution not in possible:
        return (
            f"{configuration.framework} has no execution {configuration.execution}: "
            f"take {' or '.join(possible)}"
        )
    if configuration.device == "cpu":
        return _why_not_on_cpu(configuration)
    if not configuration.device.startswith("cuda"):
        return f"no workload was tried on {configuration.device}: take cuda:0 or cpu"
    return None


def _why_not_on_cpu(configuration: Configuration) -> str | None:
    if configuration.precision == "tf32":
        return "TF32 is a format of NVIDIA GPUs: take fp32 on the CPU"
    if configuration.framework == "keras-tensorflow" and configuration.layout == "nchw":
        return "TensorFlow has no NCHW convolutions for CPUs: take nhwc"
    return None


def why_not_on_gpu(configuration: Configuration, capability: tuple[int, int]) -> str | None:
    """The reason why a GPU cannot run a configuration, or ``None``.

    Args:
        configuration: what is wanted.
        capability: compute capability of the GPU.
    """
    needed = _NEEDS.get(configuration.precision)
    if needed is None or capability >= needed:
        return None
    has, wants = (".".join(map(str, each)) for each in (capability, needed))
    return f"{configuration.precision} needs compute capability {wants}, this GPU has {has}"
