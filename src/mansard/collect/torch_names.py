"""Operators and modules of PyTorch behind each kernel, from one iteration of its own profiler.

An operator is found by time: the innermost one that was running when the kernel was launched. In
backward the module is that of the forward operator with the same sequence number.
"""

import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mansard.collect.launches import Launch
from mansard.collect.marks import Range, names_at
from mansard.collect.recording import Operator


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of an operator, in ns on the clock of the trace.

    Attributes:
        name: e.g. ``aten::conv2d``.
        start_ns: begin.
        end_ns: end.
        sequence: number that forward and backward of one operator share; -1 for none.
        backward: whether it belongs to a backward pass.
    """

    name: str
    start_ns: int
    end_ns: int
    sequence: int = -1
    backward: bool = False


class TorchNamer:
    """Notes operators and modules between start and stop.

    Args:
        torch: the module.
        clock: gives ns on the clock of the trace.
    """

    def __init__(self, torch: Any, clock: Callable[[], int]) -> None:
        self._torch, self._clock = torch, clock
        self._profiler: Any = None
        self._hooks: list[Any] = []
        self._names: dict[int, str] = {}
        self._open: list[tuple[str, int]] = []
        self._modules: list[Range] = []
        self._calls: tuple[OperatorCall, ...] = ()

    def start(self) -> None:
        """Begin to note operators."""
        profiler = self._torch.profiler
        with warnings.catch_warnings():
            # It warns that it keeps one cycle of events, which is what we want.
            warnings.simplefilter("ignore")
            self._profiler = profiler.profile(activities=[profiler.ProfilerActivity.CPU])
            self._profiler.__enter__()
        if not _compiles():
            modules = self._torch.nn.modules.module
            self._hooks = [
                modules.register_module_forward_pre_hook(self._enter),
                modules.register_module_forward_hook(self._leave, always_call=True),
            ]

    def stop(self) -> None:
        """End it; may be called again."""
        while self._hooks:
            self._hooks.pop().remove()
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        profiler.__exit__(None, None, None)
        self._calls = tuple(_calls(profiler.profiler.kineto_results.events()))

    def name(self, launches: Sequence[Launch]) -> tuple[Operator, ...]:
        """Operator and module of each launch."""
        return operators(launches, self._calls, self._modules)

    def _enter(self, module: Any, _inputs: object) -> None:
        if not self._open:
            self._names = {id(each): name for name, each in module.named_modules()}
        name = self._names.get(id(module)) or type(module).__name__
        self._open.append((name, self._clock()))

    def _leave(self, _module: Any, _inputs: object, _output: object) -> None:
        if self._open:
            name, start = self._open.pop()
            self._modules.append(Range(name, start, self._clock()))


def operators(
    launches: Sequence[Launch], calls: Sequence[OperatorCall], modules: Sequence[Range]
) -> tuple[Operator, ...]:
    """Put launches, operators and modules of one iteration together.

    Args:
        launches: with their launch times.
        calls: operators, in any order.
        modules: calls of modules in forward.
    """
    indexed = [Range(str(i), call.start_ns, call.end_ns) for i, call in enumerate(calls)]
    around = names_at(indexed, [launch.launch_ns for launch in launches])
    in_forward = names_at(modules, [launch.launch_ns for launch in launches])
    of_sequence = _module_of_sequence(calls, modules)
    found: list[Operator] = []
    for place in range(len(launches)):
        open_calls = [calls[int(index)] for index in around[place]]
        module = in_forward[place][-1] if in_forward[place] else None
        for call in open_calls:
            if module is None and call.backward:
                module = of_sequence.get(call.sequence)
        found.append((open_calls[-1].name if open_calls else None, module))
    return tuple(found)


def _module_of_sequence(calls: Sequence[OperatorCall], modules: Sequence[Range]) -> dict[int, str]:
    forward = [call for call in calls if call.sequence >= 0 and not call.backward]
    forward.sort(key=lambda call: call.start_ns)
    found: dict[int, str] = {}
    for call, around in zip(
        forward, names_at(modules, [call.start_ns for call in forward]), strict=True
    ):
        if around:
            found.setdefault(call.sequence, around[-1])
    return found


def _calls(events: Iterable[Any]) -> Iterable[OperatorCall]:
    for event in events:
        start = event.start_ns()
        yield OperatorCall(
            name=event.name(),
            start_ns=start,
            end_ns=start + event.duration_ns(),
            sequence=event.sequence_nr(),
            backward=event.fwd_thread_id() > 0,
        )


def _compiles() -> bool:
    """Whether torch.compile is in use; hooks on modules would make it compile anew."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(getattr(dynamo, "counters", None))
