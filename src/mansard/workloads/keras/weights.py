"""Weights of a Keras network that are the same on each backend."""

import math
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from mansard.errors import FormatError, InputError
from mansard.store.atomic import replacing

_Array = np.ndarray[Any, np.dtype[Any]]


def draw(network: keras.Model, seed: int) -> None:
    """Set the kernels to normal numbers with the variance 2 / fan-in (1502.01852).

    Each backend has random numbers of its own, so NumPy's are taken. The fan-in of a transposed
    convolution is that of PyTorch: filters times taps.
    """
    rng = np.random.default_rng(seed)
    for weight in network.trainable_variables:
        # Kernels are (rows, columns, in, out), of transposed ones (rows, columns, out, in).
        if len(weight.shape) == 4 and weight.name == "kernel":
            rows, columns, fan, _ = weight.shape
            numbers = rng.standard_normal(weight.shape, dtype=np.float32)
            weight.assign(numbers * math.sqrt(2.0 / (rows * columns * fan)))


def save(network: keras.Model, path: Path) -> None:
    """Write all variables to an ``.npz`` file, each under its path in the network."""
    arrays = {weight.path: keras.ops.convert_to_numpy(weight) for weight in network.variables}
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **arrays)


def load(network: keras.Model, path: Path) -> None:
    """Read what ``save`` wrote, on this backend or another.

    Raises:
        InputError: the file cannot be read.
        FormatError: it does not hold the weights of this network.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(f"{path} holds no weights (.npz of numbers): {error}") from error
    wanted = {weight.path: weight for weight in network.variables}
    for name, weight in wanted.items():
        found = arrays.get(name)
        if found is None or found.shape != tuple(weight.shape) or found.dtype.kind != "f":
            described = "nothing" if found is None else f"{found.dtype} {found.shape}"
            raise FormatError(
                f"{path}: {name} is {described}, expected float {tuple(weight.shape)}; were these "
                "weights saved at another size?"
            )
    for name, weight in wanted.items():
        weight.assign(arrays[name])
