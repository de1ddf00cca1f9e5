"""Activity records of CUPTI, as far as they are read, as in CUPTI of CUDA 12.6.

Later versions only append fields. A test compiles the vendor's headers and compares every offset.
The names of fields are the vendor's.
"""

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p as pointer
from typing import Any, ClassVar


class Record(ctypes.Structure):
    """Head of every record.

    Attributes:
        c_name: the vendor's name of the structure.
    """

    c_name: ClassVar[str] = "CUpti_Activity"
    _pack_ = 1
    _layout_ = "ms"  # what a packed structure has anyway; Python 3.14 wants it said
    _fields_ = (("kind", c_uint32),)


def record(c_name: str, *fields: tuple[str, Any]) -> Any:
    """A record with these fields after its kind."""
    inside = {"c_name": c_name, "_pack_": 1, "_layout_": "ms", "_fields_": fields}
    return type(c_name, (Record,), inside)


KernelRecord = record(
    "CUpti_ActivityKernel9",
    ("cacheConfig", c_uint8),
    ("sharedMemoryConfig", c_uint8),
    ("registersPerThread", c_uint16),
    ("partitionedGlobalCacheRequested", c_int),
    ("partitionedGlobalCacheExecuted", c_int),
    ("start", c_uint64),
    ("end", c_uint64),
    ("completed", c_uint64),
    ("deviceId", c_uint32),
    ("contextId", c_uint32),
    ("streamId", c_uint32),
    ("gridX", c_int32),
    ("gridY", c_int32),
    ("gridZ", c_int32),
    ("blockX", c_int32),
    ("blockY", c_int32),
    ("blockZ", c_int32),
    ("staticSharedMemory", c_int32),
    ("dynamicSharedMemory", c_int32),
    ("localMemoryPerThread", c_uint32),
    ("localMemoryTotal", c_uint32),
    ("correlationId", c_uint32),
    ("gridId", c_int64),
    ("name", c_char_p),
    ("reserved0", pointer),
    ("queued", c_uint64),
    ("submitted", c_uint64),
    ("launchType", c_uint8),
    ("isSharedMemoryCarveoutRequested", c_uint8),
    ("sharedMemoryCarveoutRequested", c_uint8),
    ("padding", c_uint8),
    ("sharedMemoryExecuted", c_uint32),
    ("graphNodeId", c_uint64),
    ("shmemLimitConfig", c_int),
    ("graphId", c_uint32),
)
CopyRecord = record(
    "CUpti_ActivityMemcpy5",
    ("copyKind", c_uint8),
    ("srcKind", c_uint8),
    ("dstKind", c_uint8),
    ("flags", c_uint8),
    ("bytes", c_uint64),
    ("start", c_uint64),
    ("end", c_uint64),
    ("deviceId", c_uint32),
    ("contextId", c_uint32),
    ("streamId", c_uint32),
    ("correlationId", c_uint32),
    ("runtimeCorrelationId", c_uint32),
    ("pad", c_uint32),
    ("reserved0", pointer),
    ("graphNodeId", c_uint64),
    ("graphId", c_uint32),
)
PeerCopyRecord = record(
    "CUpti_ActivityMemcpyPtoP4",
    ("copyKind", c_uint8),
    ("srcKind", c_uint8),
    ("dstKind", c_uint8),
    ("flags", c_uint8),
    ("bytes", c_uint64),
    ("start", c_uint64),
    ("end", c_uint64),
    ("deviceId", c_uint32),
    ("contextId", c_uint32),
    ("streamId", c_uint32),
    ("srcDeviceId", c_uint32),
    ("srcContextId", c_uint32),
    ("dstDeviceId", c_uint32),
    ("dstContextId", c_uint32),
    ("correlationId", c_uint32),
    ("reserved0", pointer),
    ("graphNodeId", c_uint64),
    ("graphId", c_uint32),
)
SetRecord = record(
    "CUpti_ActivityMemset4",
    ("value", c_uint32),
    ("bytes", c_uint64),
    ("start", c_uint64),
    ("end", c_uint64),
    ("deviceId", c_uint32),
    ("contextId", c_uint32),
    ("streamId", c_uint32),
    ("correlationId", c_uint32),
    ("flags", c_uint16),
    ("memoryKind", c_uint16),
    ("pad", c_uint32),
    ("reserved0", pointer),
    ("graphNodeId", c_uint64),
    ("graphId", c_uint32),
)
ApiRecord = record(
    "CUpti_ActivityAPI",
    ("cbid", c_uint32),
    ("start", c_uint64),
    ("end", c_uint64),
    ("processId", c_uint32),
    ("threadId", c_uint32),
    ("correlationId", c_uint32),
    ("returnValue", c_uint32),
)
MarkerRecord = record(
    "CUpti_ActivityMarker2",
    ("flags", c_uint32),
    ("timestamp", c_uint64),
    ("id", c_uint32),
    ("objectKind", c_uint32),
    ("objectId", c_uint32 * 3),
    ("pad", c_uint32),
    ("name", c_char_p),
    ("domain", c_char_p),
)
