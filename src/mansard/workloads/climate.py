"""Climate images in the shape of DeepCAM's: generated ones, and the weights of their classes.

The data set is CAM5 output at 768 x 1152 grid points with 16 variables and three classes of weather
for each point (arXiv 1810.01993; MLPerf HPC's DeepCAM). Generated images have its shape, its value
range after scaling, and its class shares: that sets the work of a training step, and a loss that
falls. They are not weather.
"""

import dataclasses
from typing import Any

import numpy as np

from mansard.workloads.workload import ImageSize

#: Classes of a pixel, by the number that the data set's labels have.
BACKGROUND, CYCLONE, RIVER = 0, 1, 2
CLASSES = ("background", "tropical cyclone", "atmospheric river")

#: Share of each class in the data set's pixels, from the training script of MLPerf HPC's DeepCAM.
FREQUENCIES = (0.986267818390377, 0.0004578708870701058, 0.01327431072255291)
#: Weight of a class is its frequency to this power, from the same script.
WEIGHT_EXPONENT = -0.125

#: Shares in a generated image, as arXiv 1810.01993 gives them: 98.2 %, about 0.1 % and 1.7 %.
SHARES = (0.982, 0.001, 0.017)

#: The 16 variables in the order of the files, by their names in the CAM5 model.
VARIABLES = (
    "TMQ", "U850", "V850", "UBOT", "VBOT", "QREFHT", "PS", "PSL",
    "T200", "T500", "PRECT", "TS", "TREFHT", "Z1000", "Z200", "ZBOT",
)  # fmt: skip

_RIVERS, _CYCLONES = 4, 4
#: Rows of the data set's grid; a generated image of fewer rows has narrower rivers and storms.
_GRID_ROWS = 768
#: How far the weather's mark on a variable reaches, in grid points of the data set.
_RIVER_REACH, _CYCLONE_REACH = 12.0, 10.0
#: Wind, moisture and pressure: variables that a river or a cyclone raises (+) or lowers (-).
_RIVER_MARKS = {"TMQ": 1.0, "U850": 0.6, "QREFHT": 0.5, "PRECT": 0.7}
_CYCLONE_MARKS = {"TMQ": 0.8, "PS": -1.0, "PSL": -1.2, "T200": 0.6, "T500": 0.5, "PRECT": 1.2}
_SWIRL = (("U850", "V850"), ("UBOT", "VBOT"))

_Array = np.ndarray[Any, np.dtype[Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Images and the class of each pixel.

    Attributes:
        images: float32, (batch, channels, height, width), every channel scaled to 0 ... 1.
        labels: int64, (batch, height, width).
    """

    images: _Array
    labels: _Array


def class_weights(classes: int) -> tuple[float, ...]:
    """Weight of each class in the loss: frequency ^ -1/8, as in MLPerf HPC's DeepCAM.

    Rare classes weigh more, but far less than by 1/frequency. Classes beyond the data set's three,
    which only tests use, weigh 1.
    """
    known = tuple(frequency**WEIGHT_EXPONENT for frequency in FREQUENCIES[:classes])
    return known + (1.0,) * (classes - len(known))


def generate(size: ImageSize, seed: int = 0) -> Batch:
    """Make a batch; the same numbers for the same size and seed.

    Each variable is noise with a red spectrum, as weather has. Rivers are bent filaments, cyclones
    are discs with a swirl of wind and low pressure; the pixels nearest to them carry their label,
    as many as ``SHARES`` says.
    """
    pairs = [_image(size, np.random.default_rng([seed, index])) for index in range(size.batch)]
    return Batch(
        images=np.stack([image for image, _ in pairs]),
        labels=np.stack([labels for _, labels in pairs]),
    )


def _image(size: ImageSize, rng: np.random.Generator) -> tuple[_Array, _Array]:
    shape = (size.height, size.width)
    scale = size.height / _GRID_ROWS
    rivers = _to_rivers(shape, rng)
    cyclones, swirl = _to_cyclones(shape, rng)

    labels = np.full(shape, BACKGROUND, dtype=np.int64)
    # Cyclones last: where both are, the rarer one stays whole.
    for distance, label in ((rivers, RIVER), (cyclones, CYCLONE)):
        if label < size.classes:
            labels.ravel()[_nearest(distance, SHARES[label])] = label

    river = np.exp(-rivers / (_RIVER_REACH * scale))
    cyclone = np.exp(-cyclones / (_CYCLONE_REACH * scale))
    image = np.empty((size.channels, *shape), dtype=np.float32)
    for channel in range(size.channels):
        # Channels beyond the data set's, which only tests use, are noise.
        name = VARIABLES[channel] if channel < len(VARIABLES) else ""
        field = _red_noise(shape, rng)
        field += 3.0 * (
            _RIVER_MARKS.get(name, 0.0) * river + _CYCLONE_MARKS.get(name, 0.0) * cyclone
        )
        for u, v in _SWIRL:
            if name in {u, v}:
                field += 3.0 * cyclone * swirl[0 if name == u else 1]
        low, high = field.min(), field.max()
        image[channel] = (field - low) / (high - low)
    return image, labels


def _red_noise(shape: tuple[int, int], rng: np.random.Generator) -> _Array:
    """Noise whose amplitude falls with the square of the wave number; mean 0, deviation 1."""
    waves = np.fft.rfft2(rng.standard_normal(shape))
    rows = np.fft.fftfreq(shape[0])[:, None] * shape[0]
    columns = np.fft.rfftfreq(shape[1])[None, :] * shape[1]
    # 16 keeps the largest waves from being all there is.
    waves /= 16.0 + rows**2 + columns**2
    waves[0, 0] = 0.0
    field = np.fft.irfft2(waves, s=shape)
    scaled: _Array = field / field.std()
    return scaled


def _to_rivers(shape: tuple[int, int], rng: np.random.Generator) -> _Array:
    """Distance of each pixel to the nearest of some bent filaments, in pixels."""
    height, width = shape
    rows = np.arange(height, dtype=np.float64)[:, None]
    columns = np.arange(width, dtype=np.float64)[None, :]
    nearest = np.full(shape, np.inf)
    for _ in range(_RIVERS):
        start, middle = rng.uniform(0.0, width), rng.uniform(0.15, 0.85) * height
        length = rng.uniform(0.15, 0.3) * width
        slope, bend = rng.uniform(-0.5, 0.5), rng.uniform(-0.6, 0.6) / length
        # The globe has no edge in longitude.
        along = (columns - start + width / 2) % width - width / 2
        inside = np.clip(along, 0.0, length)
        path = middle + slope * inside + bend * inside**2
        steepness = np.hypot(1.0, slope + 2.0 * bend * inside)
        nearest = np.minimum(nearest, np.hypot((rows - path) / steepness, along - inside))
    return nearest


def _to_cyclones(
    shape: tuple[int, int], rng: np.random.Generator
) -> tuple[_Array, tuple[_Array, _Array]]:
    """Distance of each pixel to the nearest storm, and the direction of the wind around it."""
    height, width = shape
    rows = np.arange(height, dtype=np.float64)[:, None]
    columns = np.arange(width, dtype=np.float64)[None, :]
    nearest = np.full(shape, np.inf)
    east, north = np.zeros(shape), np.zeros(shape)
    for _ in range(_CYCLONES):
        # Storms live between the tropics.
        down = rows - rng.uniform(0.3, 0.7) * height
        right = (columns - rng.uniform(0.0, width) + width / 2) % width - width / 2
        distance = np.hypot(down, right)
        closer = distance < nearest
        around = np.maximum(distance, 1.0)
        east = np.where(closer, down / around, east)
        north = np.where(closer, right / around, north)
        nearest = np.minimum(nearest, distance)
    return nearest, (east, north)


def _nearest(distance: _Array, share: float) -> _Array:
    """Flat positions of the given share of the pixels that are nearest; at least one."""
    count = max(1, round(share * distance.size))
    found: _Array = np.argpartition(distance.ravel(), count - 1)[:count]
    return found
