"""The segmentation network in Keras 3, on TensorFlow, JAX or PyTorch.

Keras is bound to one backend when it is imported, so a process builds for one backend only.
"""

import importlib
import importlib.util
import os
import sys

from mansard.workloads.keras.refusal import why_not
from mansard.workloads.workload import Configuration, Unavailable, Workload

_VARIABLE = "KERAS_BACKEND"
#: What a backend is called by its users.
_NAMES = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}


def build(configuration: Configuration) -> Workload:
    """Make the network, its data and its optimizer on the device.

    Raises:
        Unavailable: it cannot be built here; the message says why.
    """
    prepare(configuration)
    training = importlib.import_module("mansard.workloads.keras.training")
    built: Workload = training.build(configuration)
    return built


def prepare(configuration: Configuration) -> None:
    """Load Keras on the backend of a configuration; the other modules here need that.

    Raises:
        Unavailable: it cannot be built here; the message says why.
    """
    reason = why_not(configuration)
    if reason is not None:
        raise Unavailable(reason)
    load(configuration.framework.removeprefix("keras-"))


def load(backend: str) -> None:
    """Import Keras with a backend: ``torch``, ``jax`` or ``tensorflow``.

    Raises:
        Unavailable: one of the two is not installed, or Keras runs on another one already.
    """
    for package, name in (("keras", "Keras 3"), (backend, _NAMES[backend])):
        if importlib.util.find_spec(package) is None:
            raise Unavailable(f"{name} is not installed: pip install 'mansard[keras,{backend}]'")
    if "keras" not in sys.modules:
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = backend
        try:
            importlib.import_module("keras")
        finally:
            if before is None:
                del os.environ[_VARIABLE]
            else:
                os.environ[_VARIABLE] = before
    loaded = importlib.import_module("keras").config.backend()
    if loaded != backend:
        raise Unavailable(
            f"Keras runs on {_NAMES.get(loaded, loaded)} in this process and cannot change: start "
            f"another one with {_VARIABLE}={backend}"
        )
