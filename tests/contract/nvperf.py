"""NVIDIA's host counter library through ctypes: which counters exist, in how many passes.

It needs neither a GPU nor a driver. Only the tests use it: the product asks CUPTI on the
machine where it collects. Structures and order of calls are those of nvperf_host.h and
nvperf_cuda_host.h, which the wheel ``nvidia-cuda-cupti`` ships.
"""

import contextlib
import ctypes
import functools
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

_SIZE, _POINTER, _TEXT, _BYTE = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint8
_PROFILER = 1  # NVPA_ACTIVITY_KIND_PROFILER
_KINDS = ("counter", "ratio", "throughput")  # NVPW_MetricType


class _Request(ctypes.Structure):
    """NVPW_MetricEvalRequest: a base metric, its rollup (.sum) and submetric (.per_second)."""

    _fields_ = (
        ("index", _SIZE),
        ("kind", _BYTE),
        ("rollup", _BYTE),
        ("submetric", ctypes.c_uint16),
    )


class _RawRequest(ctypes.Structure):
    """NVPA_RawMetricRequest."""

    _fields_ = (
        ("struct_size", _SIZE),
        ("reserved", _POINTER),
        ("name", _TEXT),
        ("isolated", _BYTE),
        ("keep_instances", _BYTE),
    )


def _used_size(structure: type[ctypes.Structure]) -> int:
    """The size that the library expects: up to the last field, without padding."""
    last = getattr(structure, structure._fields_[-1][0])
    return last.offset + last.size


_REQUEST_SIZE = _used_size(_Request)
_RAW_SIZE = _used_size(_RawRequest)


@functools.cache
def _parameters(fields: tuple[tuple[str, type], ...]) -> type[ctypes.Structure]:
    head = (("struct_size", _SIZE), ("reserved", _POINTER))
    return type("Parameters", (ctypes.Structure,), {"_fields_": (*head, *fields)})


def library_path() -> Path | None:
    """The library inside the installed wheel, or None."""
    with contextlib.suppress(ImportError):
        spec = importlib.util.find_spec("nvidia")
        for place in (spec.submodule_search_locations or []) if spec else []:
            for found in sorted(Path(place).glob("*/lib/libnvperf_host.so")):
                return found
    return None


class NvPerf:
    """The loaded library."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._call("NVPW_InitializeHost")

    def _call(self, function: str, *fields: tuple[str, type, object]) -> ctypes.Structure:
        structure = _parameters(tuple((name, kind) for name, kind, _ in fields))
        arguments = structure(**{name: value for name, _, value in fields})
        arguments.struct_size = _used_size(structure)
        status = getattr(self._library, function)(ctypes.byref(arguments))
        if status:
            raise LookupError(f"{function} answered NVPA_Status {status}")
        return arguments

    def chips(self) -> tuple[str, ...]:
        """The chips that the library lists (GV100 answers although it is not listed)."""
        names = ctypes.POINTER(_TEXT)
        listed = self._call(
            "NVPW_GetSupportedChipNames", ("names", names, None), ("count", _SIZE, 0)
        )
        return tuple(listed.names[i].decode() for i in range(listed.count))

    @contextlib.contextmanager
    def chip(self, name: str) -> Iterator["Chip"]:
        """Open the catalogue of one chip."""
        common = (("chip", _TEXT, name.encode()), ("availability", _POINTER, None))
        needed = self._call(
            "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", *common, ("size", _SIZE, 0)
        )
        scratch = (_BYTE * needed.size)()
        evaluator = self._call(
            "NVPW_CUDA_MetricsEvaluator_Initialize",
            ("scratch", _POINTER, ctypes.addressof(scratch)),
            ("scratch_size", _SIZE, needed.size),
            *common,
            ("counter_data", _POINTER, None),
            ("counter_data_size", _SIZE, 0),
            ("evaluator", _POINTER, None),
        ).evaluator
        try:
            yield Chip(name, evaluator, self._call)
        finally:
            self._call("NVPW_MetricsEvaluator_Destroy", ("evaluator", _POINTER, evaluator))
            del scratch


class Chip:
    """The counters of one chip."""

    def __init__(self, name, evaluator, call) -> None:
        self.name = name
        self._evaluator = ("evaluator", _POINTER, evaluator)
        self._call = call

    def base_counters(self) -> tuple[str, ...]:
        """All base names, without rollup and submetric."""
        found = []
        for kind in range(len(_KINDS)):
            listed = self._call(
                "NVPW_MetricsEvaluator_GetMetricNames",
                self._evaluator,
                ("kind", _BYTE, kind),
                ("names", _POINTER, None),
                ("begins", ctypes.POINTER(_SIZE), None),
                ("count", _SIZE, 0),
            )
            found += [
                ctypes.string_at(listed.names + listed.begins[i]).decode()
                for i in range(listed.count)
            ]
        return tuple(found)

    def _request(self, counter: str) -> _Request:
        request = _Request()
        self._call(
            "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest",
            self._evaluator,
            ("name", _TEXT, counter.encode()),
            ("request", _POINTER, ctypes.addressof(request)),
            ("request_size", _SIZE, _REQUEST_SIZE),
        )
        return request

    def has(self, counter: str) -> bool:
        """Whether the chip counts it, rollup and submetric included."""
        try:
            self._request(counter)
        except LookupError:
            return False
        return True

    def description(self, counter: str) -> str:
        """What the library itself says the counter is."""
        request = self._request(counter)
        function, hw_unit = {
            0: ("NVPW_MetricsEvaluator_GetCounterProperties", ctypes.c_uint32),
            1: ("NVPW_MetricsEvaluator_GetRatioMetricProperties", ctypes.c_uint64),
        }[request.kind]
        properties = self._call(
            function,
            self._evaluator,
            ("index", _SIZE, request.index),
            ("description", _TEXT, None),
            ("hw_unit", hw_unit, 0),
        )
        return properties.description.decode()

    def passes(self, counters: Iterable[str]) -> int:
        """How often the work must run to collect all of them together."""
        raw = sorted({name for counter in counters for name in self._raw(counter)})
        config = self._call(
            "NVPW_CUDA_RawMetricsConfig_Create_V2",
            ("activity", ctypes.c_int, _PROFILER),
            ("chip", _TEXT, self.name.encode()),
            ("availability", _POINTER, None),
            ("config", _POINTER, None),
        ).config
        handle = ("config", _POINTER, config)
        try:
            self._call("NVPW_RawMetricsConfig_BeginPassGroup", handle, ("max_passes", _SIZE, 0))
            requests = (_RawRequest * len(raw))(
                *(_RawRequest(_RAW_SIZE, None, name, 1, 1) for name in raw)
            )
            self._call(
                "NVPW_RawMetricsConfig_AddMetrics",
                handle,
                ("requests", _POINTER, ctypes.addressof(requests)),
                ("count", _SIZE, len(raw)),
            )
            self._call("NVPW_RawMetricsConfig_EndPassGroup", handle)
            return self._call(
                "NVPW_RawMetricsConfig_GetNumPasses_V2", handle, ("passes", _SIZE, 0)
            ).passes
        finally:
            self._call("NVPW_RawMetricsConfig_Destroy", handle)

    def _raw(self, counter: str) -> list[bytes]:
        """The raw hardware counts that a counter is made from."""
        request = self._request(counter)

        def dependencies(names, count):
            return self._call(
                "NVPW_MetricsEvaluator_GetMetricRawDependencies",
                self._evaluator,
                ("requests", _POINTER, ctypes.addressof(request)),
                ("request_count", _SIZE, 1),
                ("request_size", _SIZE, _REQUEST_SIZE),
                ("request_stride", _SIZE, ctypes.sizeof(_Request)),
                ("names", ctypes.POINTER(_TEXT), names),
                ("count", _SIZE, count),
                ("optional_names", ctypes.POINTER(_TEXT), None),
                ("optional_count", _SIZE, 0),
            )

        count = dependencies(None, 0).count
        names = (_TEXT * count)()
        dependencies(names, count)
        return list(names)
