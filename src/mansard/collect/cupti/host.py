"""The host side of CUPTI's profiler: which counters a chip has, how many passes, and values.

It needs no GPU; some versions of CUPTI answer without a driver too.
"""

import contextlib
import ctypes
from collections.abc import Sequence
from typing import Any, Self

from mansard.collect.cupti import params
from mansard.collect.cupti.library import Cupti
from mansard.errors import MansardError

_RANGE_PROFILER = 0
_METRIC_TYPES = (0, 1, 2)  # counter, ratio, throughput


class CounterHost:
    """One profiler host object: a set of counters of one chip, scheduled into passes.

    Args:
        cupti: the library.
        chip: e.g. ``GH100``.
        counters: vendor names with their roll-up, e.g. ``dram__bytes.sum``.
    """

    def __init__(self, cupti: Cupti, chip: str, counters: Sequence[str] = ()) -> None:
        # Without a driver this fails where the host side itself still answers.
        with contextlib.suppress(MansardError):
            cupti.initialize_profiler()
        self._cupti = cupti
        self.counters = tuple(counters)
        self._names = _names(self.counters)
        self._object = cupti.call(
            "cuptiProfilerHostInitialize",
            params.HostInitialize(profilerType=_RANGE_PROFILER, pChipName=chip.encode()),
        ).pHostObject
        self.image: Any = None
        if self.counters:
            try:
                self._configure()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the object; CUPTI crashes at exit when this is left out."""
        if self._object is not None:
            handle, self._object = self._object, None
            self._cupti.call(
                "cuptiProfilerHostDeinitialize", params.HostDeinitialize(pHostObject=handle)
            )

    @property
    def passes(self) -> int:
        """How often the work must run for all counters."""
        answer = self._cupti.call(
            "cuptiProfilerHostGetNumOfPasses",
            params.HostGetNumOfPasses(
                configImageSize=len(self.image), pConfigImage=ctypes.addressof(self.image)
            ),
        )
        return int(answer.numOfPasses)

    def base_counters(self) -> frozenset[str]:
        """Names, without roll-up, of everything the chip can count."""
        found: set[str] = set()
        for kind in _METRIC_TYPES:
            answer = self._cupti.call(
                "cuptiProfilerHostGetBaseMetrics",
                params.HostGetBaseMetrics(pHostObject=self._object, metricType=kind),
            )
            found.update(answer.ppMetricNames[i].decode() for i in range(answer.numMetrics))
        return frozenset(found)

    def evaluate(self, image: Any, index: int) -> list[float]:
        """Values of all counters for one range of a counter image."""
        values = (ctypes.c_double * len(self.counters))()
        self._cupti.call(
            "cuptiProfilerHostEvaluateToGpuValues",
            params.HostEvaluateToGpuValues(
                pHostObject=self._object,
                pCounterDataImage=ctypes.addressof(image),
                counterDataImageSize=len(image),
                rangeIndex=index,
                ppMetricNames=self._names,
                numMetrics=len(self.counters),
                pMetricValues=ctypes.addressof(values),
            ),
        )
        return list(values)

    def _configure(self) -> None:
        self._cupti.call(
            "cuptiProfilerHostConfigAddMetrics",
            params.HostConfigAddMetrics(
                pHostObject=self._object, ppMetricNames=self._names, numMetrics=len(self.counters)
            ),
        )
        size = self._cupti.call(
            "cuptiProfilerHostGetConfigImageSize",
            params.HostGetConfigImageSize(pHostObject=self._object),
        ).configImageSize
        self.image = (ctypes.c_uint8 * size)()
        self._cupti.call(
            "cuptiProfilerHostGetConfigImage",
            params.HostGetConfigImage(
                pHostObject=self._object,
                configImageSize=size,
                pConfigImage=ctypes.addressof(self.image),
            ),
        )


def count_passes(cupti: Cupti, chip: str, counters: Sequence[str]) -> int:
    """Passes that a set of counters needs on a chip."""
    with CounterHost(cupti, chip, counters) as host:
        return host.passes


def _names(counters: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(counters))(*(name.encode() for name in counters))
