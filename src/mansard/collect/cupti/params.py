"""Argument blocks of the CUPTI functions in use, as in CUPTI of CUDA 12.6.

Later versions only append fields, and CUPTI reads as many as ``structSize`` says, so these layouts
hold for CUDA 12.6 up to 13.5. A test compiles the vendor's headers and compares every offset.
The names of blocks follow the functions; the names of fields are the vendor's.
"""

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_uint8, c_uint16, c_uint32
from ctypes import c_void_p as pointer
from typing import Any, ClassVar

Names = ctypes.POINTER(c_char_p)


class Params(ctypes.Structure):
    """Head of every argument block.

    Attributes:
        c_name: the vendor's name of the structure.
        last: name of the last field.
    """

    c_name: ClassVar[str] = ""
    last: ClassVar[str] = "pPriv"
    _fields_ = (("structSize", c_size_t), ("pPriv", pointer))

    @property
    def size(self) -> int:
        """End of the last field, without the padding that the compiler adds."""
        field = getattr(type(self), self.last)
        return int(field.offset + field.size)


def block(c_name: str, *fields: tuple[str, Any]) -> Any:
    """A block with these fields after the head."""
    last = fields[-1][0] if fields else Params.last
    return type(c_name, (Params,), {"c_name": c_name, "last": last, "_fields_": fields})


ProfilerInitialize = block("CUpti_Profiler_Initialize_Params")
DeviceSupported = block(
    "CUpti_Profiler_DeviceSupported_Params",
    ("cuDevice", c_int),
    ("isSupported", c_int),
    ("architecture", c_int),
    ("sli", c_int),
    ("vGpu", c_int),
    ("confidentialCompute", c_int),
    ("cmp", c_int),
    ("wsl", c_int),
    ("api", c_int),
)
GetChipName = block(
    "CUpti_Device_GetChipName_Params",
    ("deviceIndex", c_size_t),
    ("pChipName", c_char_p),
)
HostInitialize = block(
    "CUpti_Profiler_Host_Initialize_Params",
    ("profilerType", c_int),
    ("pChipName", c_char_p),
    ("pCounterAvailabilityImage", pointer),
    ("pHostObject", pointer),
)
HostDeinitialize = block(
    "CUpti_Profiler_Host_Deinitialize_Params",
    ("pHostObject", pointer),
)
HostGetBaseMetrics = block(
    "CUpti_Profiler_Host_GetBaseMetrics_Params",
    ("pHostObject", pointer),
    ("metricType", c_int),
    ("ppMetricNames", Names),
    ("numMetrics", c_size_t),
)
HostConfigAddMetrics = block(
    "CUpti_Profiler_Host_ConfigAddMetrics_Params",
    ("pHostObject", pointer),
    ("ppMetricNames", Names),
    ("numMetrics", c_size_t),
)
HostGetConfigImageSize = block(
    "CUpti_Profiler_Host_GetConfigImageSize_Params",
    ("pHostObject", pointer),
    ("configImageSize", c_size_t),
)
HostGetConfigImage = block(
    "CUpti_Profiler_Host_GetConfigImage_Params",
    ("pHostObject", pointer),
    ("configImageSize", c_size_t),
    ("pConfigImage", pointer),
)
HostGetNumOfPasses = block(
    "CUpti_Profiler_Host_GetNumOfPasses_Params",
    ("configImageSize", c_size_t),
    ("pConfigImage", pointer),
    ("numOfPasses", c_size_t),
)
HostEvaluateToGpuValues = block(
    "CUpti_Profiler_Host_EvaluateToGpuValues_Params",
    ("pHostObject", pointer),
    ("pCounterDataImage", pointer),
    ("counterDataImageSize", c_size_t),
    ("rangeIndex", c_size_t),
    ("ppMetricNames", Names),
    ("numMetrics", c_size_t),
    ("pMetricValues", pointer),
)
RangeEnable = block(
    "CUpti_RangeProfiler_Enable_Params",
    ("ctx", pointer),
    ("pRangeProfilerObject", pointer),
)
RangeDisable = block(
    "CUpti_RangeProfiler_Disable_Params",
    ("pRangeProfilerObject", pointer),
)
RangeStart = block(
    "CUpti_RangeProfiler_Start_Params",
    ("pRangeProfilerObject", pointer),
)
RangeStop = block(
    "CUpti_RangeProfiler_Stop_Params",
    ("pRangeProfilerObject", pointer),
    ("passIndex", c_size_t),
    ("targetNestingLevel", c_size_t),
    ("isAllPassSubmitted", c_uint8),
)
RangePush = block(
    "CUpti_RangeProfiler_PushRange_Params",
    ("pRangeProfilerObject", pointer),
    ("pRangeName", c_char_p),
)
RangePop = block(
    "CUpti_RangeProfiler_PopRange_Params",
    ("pRangeProfilerObject", pointer),
)
RangeSetConfig = block(
    "CUpti_RangeProfiler_SetConfig_Params",
    ("pRangeProfilerObject", pointer),
    ("configSize", c_size_t),
    ("pConfig", pointer),
    ("counterDataImageSize", c_size_t),
    ("pCounterDataImage", pointer),
    ("range", c_int),
    ("replayMode", c_int),
    ("maxRangesPerPass", c_size_t),
    ("numNestingLevels", c_uint16),
    ("minNestingLevel", c_uint16),
    ("passIndex", c_size_t),
    ("targetNestingLevel", c_uint16),
)
RangeDecodeData = block(
    "CUpti_RangeProfiler_DecodeData_Params",
    ("pRangeProfilerObject", pointer),
    ("numOfRangeDropped", c_size_t),
)
RangeGetCounterDataSize = block(
    "CUpti_RangeProfiler_GetCounterDataSize_Params",
    ("pRangeProfilerObject", pointer),
    ("pMetricNames", Names),
    ("numMetrics", c_size_t),
    ("maxNumOfRanges", c_size_t),
    ("maxNumRangeTreeNodes", c_uint32),
    ("counterDataSize", c_size_t),
)
RangeCounterDataInitialize = block(
    "CUpti_RangeProfiler_CounterDataImage_Initialize_Params",
    ("pRangeProfilerObject", pointer),
    ("counterDataSize", c_size_t),
    ("pCounterData", pointer),
)
RangeGetCounterDataInfo = block(
    "CUpti_RangeProfiler_GetCounterDataInfo_Params",
    ("pCounterDataImage", pointer),
    ("counterDataImageSize", c_size_t),
    ("numTotalRanges", c_size_t),
)
RangeGetRangeInfo = block(
    "CUpti_RangeProfiler_CounterData_GetRangeInfo_Params",
    ("pCounterDataImage", pointer),
    ("counterDataImageSize", c_size_t),
    ("rangeIndex", c_size_t),
    ("rangeDelimiter", c_char_p),
    ("rangeName", c_char_p),
)
