"""DeepCAM's HDF5 samples."""

import builtins

import numpy as np
import pytest

from mansard.errors import FormatError, InputError
from mansard.workloads.climate_files import read_batch
from mansard.workloads.workload import ImageSize, Unavailable

h5py = pytest.importorskip("h5py", reason="h5py is not installed")

SIZE = ImageSize(batch=2, height=16, width=32, channels=2)


def _write(path, data, labels):
    with h5py.File(path, "w") as file:
        if data is not None:
            file["climate/data"] = data
        if labels is not None:
            file["climate/labels_0"] = labels


def _sample(seed=0):
    rng = np.random.default_rng(seed)
    data = rng.uniform(-5, 5, (16, 32, 2)).astype(np.float32)
    return data, rng.integers(0, 3, (16, 32))


@pytest.fixture
def folder(tmp_path):
    for name, seed in (("data-1.h5", 1), ("data-2.h5", 2), ("data-3.h5", 3)):
        _write(tmp_path / name, *_sample(seed))
    return tmp_path


def test_samples_come_in_the_order_of_their_names_with_channels_first(folder):
    batch = read_batch(folder, SIZE)
    data, labels = _sample(2)
    assert batch.images.shape == (2, 2, 16, 32)
    assert batch.images.dtype == np.float32
    assert batch.labels.dtype == np.int64
    np.testing.assert_array_equal(batch.labels[1], labels)
    low, high = data[..., 1].min(), data[..., 1].max()
    np.testing.assert_allclose(batch.images[1, 1], (data[..., 1] - low) / (high - low), rtol=1e-5)


def test_the_ranges_of_the_data_set_scale_where_they_are_given(folder):
    with h5py.File(folder / "stats.h5", "w") as file:
        file["climate/minval"] = np.array([-10.0, 0.0], dtype=np.float32)
        file["climate/maxval"] = np.array([10.0, 2.0], dtype=np.float32)
    batch = read_batch(folder, SIZE)
    data, _ = _sample(1)
    np.testing.assert_allclose(batch.images[0, 0], (data[..., 0] + 10) / 20, rtol=1e-5)
    np.testing.assert_allclose(batch.images[0, 1], data[..., 1] / 2, rtol=1e-5)


def test_a_variable_without_a_range_becomes_zero(tmp_path):
    data, labels = _sample()
    data[..., 0] = 3
    _write(tmp_path / "a.h5", data, labels)
    image = read_batch(tmp_path, ImageSize(batch=1, height=16, width=32, channels=2)).images[0]
    assert np.all(image[0] == 0)


def test_too_few_samples_are_said(folder):
    (folder / "data-1.h5").unlink()
    (folder / "data-2.h5").unlink()
    with pytest.raises(InputError, match="has 1 samples"):
        read_batch(folder, SIZE)


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot read the folder"):
        read_batch(tmp_path / "none", SIZE)


DATA, LABELS = _sample()
NAN = DATA.copy()
NAN[0, 0, 0] = np.nan


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (None, LABELS, "no sample of DeepCAM: it has no climate/data"),
        (DATA, None, "it has no climate/labels_0"),
        (DATA.transpose(2, 0, 1), LABELS, r"climate/data is \(2, 16, 32\), expected \(16, 32, 2\)"),
        (DATA, LABELS[:8], r"climate/labels_0 is \(8, 32\)"),
        (DATA, LABELS + 1, "classes from 1 to 3, expected 0 to 2"),
        (DATA, LABELS - 1, "classes from -1 to 1"),
        (NAN, LABELS, "not finite"),
        (np.full(DATA.shape, b"x"), LABELS, "expected numbers"),
    ],
    ids=["no-data", "no-labels", "order", "shape", "class-3", "class-1", "nan", "text"],
)
def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path, data, labels, message):
    _write(tmp_path / "a.h5", data, labels)
    _write(tmp_path / "b.h5", data, labels)
    with pytest.raises(FormatError, match=message) as raised:
        read_batch(tmp_path, SIZE)
    assert "\n" not in str(raised.value)
    assert "a.h5" in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"not HDF5" * 100])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, content):
    (tmp_path / "a.h5").write_bytes(content)
    (tmp_path / "b.h5").write_bytes(content)
    with pytest.raises(FormatError, match=r"cannot read .*a\.h5 as HDF5") as raised:
        read_batch(tmp_path, SIZE)
    assert "\n" not in str(raised.value)


def test_a_cut_file_is_refused(tmp_path):
    _write(tmp_path / "a.h5", *_sample())
    whole = (tmp_path / "a.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.h5").write_bytes(whole)
    with pytest.raises(FormatError, match=r"a\.h5"):
        read_batch(tmp_path, SIZE)


def test_a_data_set_that_points_elsewhere_is_refused(tmp_path):
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file["climate/data"] = h5py.ExternalLink("/etc/passwd", "/x")
    with pytest.raises(FormatError, match=r"a\.h5"):
        read_batch(tmp_path, SIZE)


def test_without_h5py_the_remedy_is_said(folder, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments):
        if name == "h5py":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Unavailable, match=r"pip install 'mansard\[hdf5\]'"):
        read_batch(folder, SIZE)
