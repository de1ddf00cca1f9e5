"""DeepCAM's own files: CAM5 samples in HDF5, one time step in each.

Layout, as the data set's description and MLPerf HPC's reader have it: ``climate/data`` is (768,
1152, 16), ``climate/labels_0`` is (768, 1152) with 0 background, 1 tropical cyclone, 2 atmospheric
river. ``stats.h5`` beside the samples has the least and the largest value of each variable in
``climate/minval`` and ``climate/maxval``.
"""

from pathlib import Path
from typing import Any

import numpy as np

from mansard.errors import FormatError, InputError
from mansard.workloads.climate import Batch
from mansard.workloads.workload import ImageSize, Unavailable

_DATA, _LABELS = "climate/data", "climate/labels_0"
_LEAST, _LARGEST = "climate/minval", "climate/maxval"
_STATISTICS = "stats.h5"
_MOST_FILES = 1_000_000

_Array = np.ndarray[Any, np.dtype[Any]]


def read_batch(folder: Path, size: ImageSize) -> Batch:
    """Read the first samples of a folder, in the order of their names.

    Each variable is scaled to 0 ... 1 with the range in ``stats.h5``, as MLPerf HPC does, or with
    the range in the sample where there is no such file.

    Args:
        folder: with one ``.h5`` file a sample.
        size: how many, and what they must look like.

    Raises:
        Unavailable: h5py is not installed.
        InputError: too few files.
        FormatError: a file is not a sample of that size.
    """
    try:
        found = sorted(_samples(folder))
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror or error}") from error
    if len(found) < size.batch:
        raise InputError(
            f"{folder} has {len(found)} samples (*.h5), a batch needs {size.batch}: name the "
            "folder with the data set's files"
        )
    statistics = folder / _STATISTICS
    ranges = _read_ranges(statistics, size.channels) if statistics.is_file() else None
    pairs = [_read_sample(path, size, ranges) for path in found[: size.batch]]
    return Batch(
        images=np.stack([image for image, _ in pairs]),
        labels=np.stack([labels for _, labels in pairs]),
    )


def _samples(folder: Path) -> list[Path]:
    paths = []
    for count, path in enumerate(folder.iterdir()):
        if count >= _MOST_FILES:
            raise InputError(f"{folder} has more than {_MOST_FILES:,} entries: name another folder")
        if path.suffix == ".h5" and path.name != _STATISTICS:
            paths.append(path)
    return paths


def _read_sample(
    path: Path, size: ImageSize, ranges: tuple[_Array, _Array] | None
) -> tuple[_Array, _Array]:
    shape = (size.height, size.width)
    data, labels = _read(path, {_DATA: (*shape, size.channels), _LABELS: shape})
    labels = labels.astype(np.int64)
    if labels.min() < 0 or labels.max() >= size.classes:
        raise FormatError(
            f"{path}: {_LABELS} has classes from {labels.min()} to {labels.max()}, "
            f"expected 0 to {size.classes - 1}"
        )
    image = np.ascontiguousarray(data.astype(np.float32).transpose(2, 0, 1))
    if not np.isfinite(image).all():
        raise FormatError(f"{path}: {_DATA} has values that are not finite")
    least, largest = ranges or (image.min(axis=(1, 2)), image.max(axis=(1, 2)))
    span = np.where(largest > least, largest - least, 1.0)
    scaled = (image - least[:, None, None]) / span[:, None, None]
    return scaled.astype(np.float32), labels


def _read_ranges(path: Path, channels: int) -> tuple[_Array, _Array]:
    least, largest = _read(path, {_LEAST: (channels,), _LARGEST: (channels,)})
    return least.astype(np.float32), largest.astype(np.float32)


def _read(path: Path, wanted: dict[str, tuple[int, ...]]) -> list[_Array]:
    """Read data sets whose shapes are checked before anything large is read."""
    try:
        import h5py  # noqa: PLC0415  (an optional extra)
    except ImportError as error:
        raise Unavailable(
            "samples in HDF5 need h5py: pip install 'mansard[hdf5]', or leave the folder out "
            "for generated images"
        ) from error
    arrays = []
    try:
        with h5py.File(path, "r") as file:
            for name, shape in wanted.items():
                found = file.get(name)
                if not isinstance(found, h5py.Dataset):
                    raise FormatError(f"{path} is no sample of DeepCAM: it has no {name}")
                if found.shape != shape:
                    raise FormatError(f"{path}: {name} is {found.shape}, expected {shape}")
                if found.dtype.kind not in "iuf":
                    raise FormatError(f"{path}: {name} holds {found.dtype}, expected numbers")
                arrays.append(found[...])
    # h5py raises these for damaged files; which of them depends on what is damaged.
    except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise FormatError(f"cannot read {path} as HDF5: {reason}") from error
    return arrays
