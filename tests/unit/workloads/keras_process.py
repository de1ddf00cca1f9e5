"""What one process finds of one backend; ``test_keras.py`` starts it, and judges.

python keras_process.py FOLDER [OPTIONS OF THE EXAMPLE]
"""

import json
import runpy
import sys
import warnings
from pathlib import Path

import numpy as np

from mansard.collect.frameworks import keras_callback
from mansard.collect.marks import MarkRecorder, listening
from mansard.errors import FormatError, InputError
from mansard.workloads import Configuration, Unavailable, build
from mansard.workloads.keras import load
from mansard.workloads.workload import TINY

EXAMPLE = Path(__file__).parents[3] / "examples" / "deepcam_keras.py"
PRECISIONS = ("fp32", "amp-bf16", "amp-fp16")


def message_of(kind, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        return str(error)
    return None


def small_steps(backend, executions):
    """Losses and phases of each execution and precision, on a network that compiles in no time."""
    import keras

    from mansard.workloads.keras.problem import Problem
    from mansard.workloads.keras.training import (
        _backend,
        _make_optimizer,
        _policy,
        _weighted_cross_entropy,
        layers_of,
    )
    from mansard.workloads.keras.weights import draw

    images = np.random.default_rng(3).random((2, 16, 24, 4), dtype=np.float32)
    labels = (images[..., 0] > 0.5).astype(np.int32)
    found = {}
    for execution in executions:
        for precision in PRECISIONS if execution == executions[0] else PRECISIONS[:1]:
            with _policy(precision):
                layers = layers_of(execution)("channels_last")
                inputs = keras.Input(batch_shape=images.shape)
                x = layers.conv_norm_relu(inputs, 8, 3, stride=2, name="a")
                x = layers.conv_norm_relu(x, 8, 3, dilation=2, name="d")
                x = layers.joined([x, layers.spread_mean(x, 8, "m")])
                network = keras.Model(inputs, layers.transposed_conv(x, 2, "b"))
            draw(network, 1)
            optimizer = _make_optimizer(precision)
            optimizer.build(network.trainable_variables)
            problem = Problem(
                network=network,
                optimizer=optimizer,
                loss=_weighted_cross_entropy(2, "nhwc"),
                images=keras.ops.convert_to_tensor(images),
                labels=keras.ops.convert_to_tensor(labels),
                execution=execution,
            )
            place = _backend().place("cpu")
            with keras.device(place), _backend().switched(tf32=False):
                step, wait = _backend().make_step(problem)
                with warnings.catch_warnings(record=True) as said:
                    losses = [float(keras.ops.convert_to_numpy(step())) for _ in range(5)]
                recorder = Ranges()
                with listening(recorder):
                    step()
                wait()
            found[f"{execution} {precision}"] = {
                "losses": losses,
                "ranges": recorder.seen,
                "captured": [str(each.message) for each in said if "captured" in str(each.message)],
            }
    return found


class Ranges(MarkRecorder):
    def __init__(self):
        super().__init__(lambda: 0)
        self.seen = []

    def begin(self, name):
        self.seen.append(name)
        return 0

    def end(self, token):
        pass


class Taken:
    """Stands in for a profile."""

    def __init__(self):
        self.seen = []

    def begin_step(self):
        self.seen.append("begin")

    def end_step(self):
        self.seen.append("end")


def fitted(callbacks):
    """Weights after ``model.fit`` over three batches."""
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.layers[0].kernel.assign(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    model.compile(optimizer="sgd", loss="mse")
    x = np.random.default_rng(0).random((6, 4), dtype=np.float32)
    model.fit(x, x[:, :3], batch_size=2, epochs=1, shuffle=False, verbose=0, callbacks=callbacks)
    return model.layers[0].kernel.numpy().tolist()


def gradients():
    """Largest difference of each written gradient from the one that JAX derives, over its size."""
    import jax
    import keras

    from mansard.workloads.keras.layers_jax import dilated, doubled

    rng = np.random.default_rng(4)
    maps = {"channels_last": (2, 6, 10, 5), "channels_first": (2, 5, 6, 10)}
    found = {}
    for data_format, shape in maps.items():
        x = rng.normal(size=shape).astype("f")
        forms = {
            "transposed": (
                rng.normal(size=(3, 3, 4, 5)).astype("f"),
                lambda x, k, f=data_format: doubled(x, k, f),
                lambda x, k, f=data_format: keras.ops.conv_transpose(
                    x, k, strides=2, padding="same", data_format=f
                ),
            ),
        }
        for rate in (2, 7):
            forms[f"dilated by {rate}"] = (
                rng.normal(size=(3, 3, 5, 4)).astype("f"),
                lambda x, k, f=data_format, r=rate: dilated(x, k, r, f),
                lambda x, k, f=data_format, r=rate: keras.ops.conv(
                    x, k, padding="same", data_format=f, dilation_rate=r
                ),
            )
        for name, (kernel, written, derived) in forms.items():
            scores, pull = jax.vjp(written, x, kernel)
            wanted_scores, wanted_pull = jax.vjp(derived, x, kernel)
            weights = rng.normal(size=scores.shape).astype("f")
            pairs = [
                (scores, wanted_scores),
                *zip(pull(weights), wanted_pull(weights), strict=True),
            ]
            found[f"{name}, {data_format}"] = [
                float(abs(one - other).max() / abs(other).max()) for one, other in pairs
            ]
    return found


def against_pytorch():
    """Largest difference of the scores from those of the same network in PyTorch."""
    import keras
    import torch

    from mansard.workloads.keras.deeplab import make_deeplab
    from mansard.workloads.pytorch.deeplab import make_deeplab as make_in_pytorch

    torch.manual_seed(0)
    twin = make_in_pytorch("deeplab-resnet50", TINY).eval()
    for module in twin.modules():
        strided = isinstance(module, torch.nn.Conv2d) and module.stride == (2, 2)
        if strided and module.kernel_size == (1, 1):
            # A strided skip takes the first of four pixels here and there, which is the last of
            # them in a mirror.
            module.register_forward_pre_hook(lambda _, x: (x[0].roll((-1, -1), (2, 3)),))
    network = make_deeplab(TINY, "nhwc")
    parameters = {name.replace(".", "_"): value for name, value in twin.named_parameters()}
    for weight in network.trainable_variables:
        layer, _, kind = weight.path.rpartition("/")
        value = parameters.pop(
            f"{layer}_{'bias' if kind in ('beta', 'bias') else 'weight'}"
        ).detach()
        if kind == "kernel":
            # Rows and columns first, and mirrored.
            value = value.permute(2, 3, 1, 0).flip(0, 1)
        weight.assign(value.numpy().reshape(weight.shape))
    images = torch.rand(TINY.batch, TINY.channels, TINY.height, TINY.width)
    with torch.no_grad():
        expected = twin(images).permute(0, 2, 3, 1)
        mirrored = images.flip(2, 3).permute(0, 2, 3, 1).contiguous()
        scores = network(mirrored, training=False).flip(1, 2)
    return {
        "left": sorted(parameters),
        "difference": float((scores - expected).abs().max() / expected.abs().max()),
        "spread": float(expected.std() / expected.abs().max()),
        "backend": keras.config.backend(),
    }


def hostile_files(folder):
    """What is said of files that hold no weights of a network."""
    import keras

    from mansard.workloads.keras import weights

    def network(filters):
        inputs = keras.Input((4,))
        return keras.Model(inputs, keras.layers.Dense(filters, name="d")(inputs))

    def loaded_again():
        first, second = network(3), network(3)
        weights.save(first, good)
        weights.load(second, good)
        pairs = zip(first.variables, second.variables, strict=True)
        return all(np.array_equal(a.value.detach(), b.value.detach()) for a, b in pairs)

    good, text, pickled = (folder / name for name in ("good.npz", "text.npz", "pickled.npz"))
    weights.save(network(3), good)
    text.write_text("hello")
    np.savez(pickled, **{"d/kernel": np.array([{}], dtype=object)})
    return {
        "other size": message_of(FormatError, weights.load, network(2), good),
        "text": message_of(FormatError, weights.load, network(3), text),
        "pickled": message_of(FormatError, weights.load, network(3), pickled),
        "missing": message_of(InputError, weights.load, network(3), folder / "none.npz"),
        "good": loaded_again(),
    }


def main():
    folder, framework = Path(sys.argv[1]), sys.argv[2]
    backend = framework.removeprefix("keras-")
    load(backend)
    from mansard.workloads.keras.refusal import EXECUTIONS

    other = "keras-jax" if backend != "jax" else "keras-torch"
    configuration = Configuration(
        model="deeplab-resnet50", framework=other, precision="fp32", layout="nhwc",
        optimizer="keras-adam", execution=EXECUTIONS[other][0], size=TINY, device="cpu",
    )  # fmt: skip
    taken = Taken()
    found = {
        "small": small_steps(backend, EXECUTIONS[framework]),
        "other backend": message_of(Unavailable, build, configuration),
        "fit": {
            "plain": fitted([]),
            "watched": fitted([keras_callback(taken)]),
            "seen": taken.seen,
        },
    }
    if backend == "torch":
        found["pytorch"] = against_pytorch()
        found["files"] = hostile_files(folder)
    if backend == "jax":
        found["gradients"] = gradients()
    (folder / f"{backend}.found.json").write_text(json.dumps(found))
    sys.argv = [str(EXAMPLE), *sys.argv[3:]]
    runpy.run_path(str(EXAMPLE), run_name="__main__")


if __name__ == "__main__":
    main()
