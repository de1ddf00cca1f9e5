"""The target side of CUPTI's profiler: counts what runs on one GPU between start and stop.

Each kernel becomes a range of its own (auto ranges), or the program opens and closes named ranges
(user ranges). Nothing is replayed here: the program itself runs again for the next pass.
"""

import ctypes
import dataclasses
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from mansard.collect.cupti import params
from mansard.collect.cupti.host import CounterHost
from mansard.collect.cupti.library import Cupti


class RangeMode(IntEnum):
    """What a range is; the numbers are CUPTI's."""

    KERNEL = 1
    NAMED = 2


_APPLICATION_REPLAY = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Ranges:
    """What a counter image holds once all passes are in.

    Attributes:
        names: of each range, in order of execution; numbers for kernels.
        values: per range, the values of the counters in the order asked for.
        dropped: ranges that did not fit in the image.
    """

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    dropped: int


class RangeProfiler:
    """Counters of one context, for one set of counters.

    Args:
        cupti: the library.
        context: CUcontext handle.
    """

    def __init__(self, cupti: Cupti, context: int) -> None:
        self._cupti = cupti
        cupti.initialize_profiler()
        self._object = cupti.call(
            "cuptiRangeProfilerEnable", params.RangeEnable(ctx=context)
        ).pRangeProfilerObject
        self._host: CounterHost | None = None
        self._image: Any = None
        self._running = False

    def image_bytes(self, counters: Sequence[str], most_ranges: int) -> int:
        """Memory that the values of these counters take."""
        answer = self._cupti.call(
            "cuptiRangeProfilerGetCounterDataSize",
            params.RangeGetCounterDataSize(
                pRangeProfilerObject=self._object,
                pMetricNames=_names(counters),
                numMetrics=len(counters),
                maxNumOfRanges=most_ranges,
                maxNumRangeTreeNodes=most_ranges,
            ),
        )
        return int(answer.counterDataSize)

    def configure(self, host: CounterHost, *, mode: RangeMode, most_ranges: int) -> None:
        """Choose what to count; once only, since a second time gives no values.

        Args:
            host: the counters.
            mode: whether kernels or named ranges are counted.
            most_ranges: ranges in one pass; it sizes the counter image, so count them first.
        """
        size = self.image_bytes(host.counters, most_ranges)
        image = (ctypes.c_uint8 * size)()
        self._cupti.call(
            "cuptiRangeProfilerCounterDataImageInitialize",
            params.RangeCounterDataInitialize(
                pRangeProfilerObject=self._object,
                counterDataSize=size,
                pCounterData=ctypes.addressof(image),
            ),
        )
        self._cupti.call(
            "cuptiRangeProfilerSetConfig",
            params.RangeSetConfig(
                pRangeProfilerObject=self._object,
                configSize=len(host.image),
                pConfig=ctypes.addressof(host.image),
                counterDataImageSize=size,
                pCounterDataImage=ctypes.addressof(image),
                range=int(mode),
                replayMode=_APPLICATION_REPLAY,
                maxRangesPerPass=most_ranges,
                numNestingLevels=1,
                minNestingLevel=1,
                passIndex=0,
                targetNestingLevel=0 if mode is RangeMode.KERNEL else 1,
            ),
        )
        # The library keeps pointers to both, so they must live as long as this configuration.
        self._host, self._image = host, image

    def start(self) -> None:
        """Begin a pass."""
        self._cupti.call(
            "cuptiRangeProfilerStart", params.RangeStart(pRangeProfilerObject=self._object)
        )
        self._running = True

    def stop(self) -> bool:
        """End a pass; True when it was the last one of this configuration."""
        self._running = False
        answer = self._cupti.call(
            "cuptiRangeProfilerStop", params.RangeStop(pRangeProfilerObject=self._object)
        )
        return bool(answer.isAllPassSubmitted)

    def push(self, name: str) -> None:
        """Open a named range."""
        self._cupti.call(
            "cuptiRangeProfilerPushRange",
            params.RangePush(pRangeProfilerObject=self._object, pRangeName=name.encode()),
        )

    def pop(self) -> None:
        """Close the named range."""
        self._cupti.call(
            "cuptiRangeProfilerPopRange", params.RangePop(pRangeProfilerObject=self._object)
        )

    def read(self) -> Ranges:
        """Values of all ranges; call it after the last pass has stopped."""
        dropped = self._cupti.call(
            "cuptiRangeProfilerDecodeData",
            params.RangeDecodeData(pRangeProfilerObject=self._object),
        ).numOfRangeDropped
        head = {
            "pCounterDataImage": ctypes.addressof(self._image),
            "counterDataImageSize": len(self._image),
        }
        count = self._cupti.call(
            "cuptiRangeProfilerGetCounterDataInfo", params.RangeGetCounterDataInfo(**head)
        ).numTotalRanges
        names: list[str] = []
        values: list[tuple[float, ...]] = []
        for index in range(count):
            answer = self._cupti.call(
                "cuptiRangeProfilerCounterDataGetRangeInfo",
                params.RangeGetRangeInfo(**head, rangeIndex=index, rangeDelimiter=b"/"),
            )
            names.append((answer.rangeName or b"").decode(errors="replace"))
            if self._host is not None:
                values.append(tuple(self._host.evaluate(self._image, index)))
        return Ranges(tuple(names), tuple(values), int(dropped))

    def close(self) -> None:
        """Stop what runs and hand the counters back to the driver; may be called again."""
        if self._object is None:
            return
        handle, self._object = self._object, None
        try:
            if self._running:
                self._running = False
                self._cupti.call(
                    "cuptiRangeProfilerStop", params.RangeStop(pRangeProfilerObject=handle)
                )
        finally:
            self._cupti.call(
                "cuptiRangeProfilerDisable", params.RangeDisable(pRangeProfilerObject=handle)
            )
            self._host = self._image = None


def _names(counters: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(counters))(*(name.encode() for name in counters))
