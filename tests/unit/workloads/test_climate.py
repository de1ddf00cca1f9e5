"""Generated climate images."""

import dataclasses

import numpy as np
import pytest

from mansard.workloads.climate import (
    BACKGROUND,
    CYCLONE,
    RIVER,
    VARIABLES,
    class_weights,
    generate,
)
from mansard.workloads.workload import TINY, ImageSize

SIZE = ImageSize(batch=2, height=192, width=288)


@pytest.fixture(scope="module")
def batch():
    return generate(SIZE)


def _share(labels, label):
    return float(np.mean(labels == label))


def test_a_batch_has_the_shape_and_type_of_the_data_set(batch):
    assert batch.images.shape == (2, 16, 192, 288)
    assert batch.images.dtype == np.float32
    assert batch.labels.shape == (2, 192, 288)
    assert batch.labels.dtype == np.int64


def test_the_classes_have_the_shares_of_the_data_set(batch):
    assert _share(batch.labels, BACKGROUND) == pytest.approx(0.982, abs=0.001)
    assert _share(batch.labels, RIVER) == pytest.approx(0.017, abs=0.001)
    assert _share(batch.labels, CYCLONE) == pytest.approx(0.001, abs=0.0001)


def test_rivers_and_cyclones_hang_together(batch):
    # A labelled pixel of coherent weather has a neighbour of its class nearly always; scattered
    # pixels of these shares would have one in 7 % and 0.4 % of the cases.
    for label in (RIVER, CYCLONE):
        here = batch.labels == label
        beside = np.zeros_like(here)
        for axis, shift in ((1, 1), (1, -1), (2, 1), (2, -1)):
            beside |= np.roll(here, shift, axis)
        assert np.mean(beside[here]) > 0.9


def test_every_variable_fills_the_range_from_0_to_1(batch):
    assert np.all(batch.images.min(axis=(2, 3)) == 0)
    assert np.all(batch.images.max(axis=(2, 3)) == 1)


def test_the_weather_shows_in_the_variables(batch):
    moisture = batch.images[:, VARIABLES.index("TMQ")]
    pressure = batch.images[:, VARIABLES.index("PSL")]
    assert moisture[batch.labels == RIVER].mean() > moisture[batch.labels == BACKGROUND].mean()
    assert pressure[batch.labels == CYCLONE].mean() < pressure[batch.labels == BACKGROUND].mean()


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others():
    first, again, other = generate(TINY, 7), generate(TINY, 7), generate(TINY, 8)
    np.testing.assert_array_equal(first.images, again.images)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.images, other.images)


def test_an_image_does_not_depend_on_how_many_there_are():
    one = generate(dataclasses.replace(TINY, batch=1), 3)
    np.testing.assert_array_equal(one.images[0], generate(TINY, 3).images[0])


def test_images_of_a_batch_differ(batch):
    assert not np.array_equal(batch.labels[0], batch.labels[1])


def test_the_smallest_image_has_each_class():
    labels = generate(ImageSize(batch=1, height=16, width=16)).labels
    assert set(np.unique(labels)) == {BACKGROUND, CYCLONE, RIVER}


def test_fewer_classes_and_more_variables_work_too():
    batch = generate(ImageSize(batch=1, height=16, width=32, channels=20, classes=2))
    assert batch.images.shape[1] == 20
    assert batch.labels.max() == 1


def test_a_class_weighs_the_eighth_root_of_its_rarity():
    # 1 / 0.0004578708870701058 = 2184.02..., its eighth root 2.61461 (MLPerf HPC's own numbers).
    background, cyclone, river = class_weights(3)
    assert background == pytest.approx(1.00173, abs=1e-5)
    assert cyclone == pytest.approx(2.61461122, abs=1e-8)
    assert river == pytest.approx(1.71641975, abs=1e-8)
    assert class_weights(5)[3:] == (1.0, 1.0)
