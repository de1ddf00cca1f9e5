"""Operators and modules of PyTorch behind each kernel, from one iteration that is watched.

An operator is found by time: the one that was running when the kernel was launched. PyTorch
tells of each call through a dispatch mode, in forward and, on autograd's threads, in backward.
Its own profiler would tell as much, but takes CUPTI for itself.

In backward the module is that whose forward made the node of the graph that is running: nodes
are numbered as they are made, so the calls of a module own a range of numbers.
"""

import dataclasses
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from mansard.collect.launches import Launch
from mansard.collect.marks import Range, names_at
from mansard.collect.recording import Operator

#: Nodes that gather gradients have no number of their own; PyTorch gives the highest one.
_NO_NUMBER = (1 << 64) - 1


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of an operator, in ns on the clock of the trace.

    Attributes:
        name: e.g. ``aten::convolution``.
        start_ns: begin.
        end_ns: end.
        node: in backward, the number of the node of the graph that called it.
    """

    name: str
    start_ns: int
    end_ns: int
    node: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleCall:
    """One forward of a module.

    Attributes:
        name: its path in the outermost module, e.g. ``backbone.layer1.0``.
        start_ns: begin.
        end_ns: end.
        first_node: number of the first node of the graph that it could make.
        end_node: number after the last.
        thread: who called it; each thread numbers the nodes by itself.
    """

    name: str
    start_ns: int
    end_ns: int
    first_node: int
    end_node: int
    thread: int = 0


class TorchNamer:
    """Notes operators and modules between start and stop, which one thread calls.

    Args:
        torch: the module.
        clock: gives ns on the clock of the trace.
    """

    def __init__(self, torch: Any, clock: Callable[[], int]) -> None:
        self._torch, self._clock = torch, clock
        self._mode: Any = None
        self._hooks: list[Any] = []
        self._names: dict[int, str] = {}
        self._open: list[tuple[str, int, int]] = []
        self._modules: list[ModuleCall] = []
        self._calls: list[OperatorCall] = []
        #: Why nothing can be noted here; None when it can.
        self.obstacle: str | None = None

    def start(self) -> None:
        """Begin to note; nothing happens in a program that uses ``torch.compile``.

        A compiled function falls back to single operators under a dispatch mode, and hooks on
        modules make it compile anew: the iteration would not be the program's.
        """
        if _compiles():
            self.obstacle = (
                "the program uses torch.compile, whose kernels have the names of the operators "
                "that they fuse"
            )
            return
        modules = self._torch.nn.modules.module
        self._hooks = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, always_call=True),
        ]
        self._mode = _mode(self._torch, self._clock, self._calls.append)
        self._mode.__enter__()

    def stop(self) -> None:
        """End it; may be called again."""
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)
        while self._hooks:
            self._hooks.pop().remove()

    def name(self, launches: Sequence[Launch]) -> tuple[Operator, ...]:
        """Operator and module of each launch."""
        return operators(launches, self._calls, self._modules)

    def _enter(self, module: Any, _inputs: object) -> None:
        if not self._open:
            self._names = {id(each): name for name, each in module.named_modules()}
        name = self._names.get(id(module)) or type(module).__name__
        self._open.append((name, self._clock(), self._torch.autograd._get_sequence_nr()))  # noqa: SLF001

    def _leave(self, _module: Any, _inputs: object, _output: object) -> None:
        if not self._open:
            return
        name, start_ns, first_node = self._open.pop()
        self._modules.append(
            ModuleCall(
                name,
                start_ns,
                self._clock(),
                first_node,
                self._torch.autograd._get_sequence_nr(),  # noqa: SLF001
                threading.get_ident(),
            )
        )


def operators(
    launches: Sequence[Launch], calls: Sequence[OperatorCall], modules: Sequence[ModuleCall]
) -> tuple[Operator, ...]:
    """Put launches, operators and modules of one iteration together.

    Args:
        launches: with their launch times.
        calls: operators, in any order.
        modules: calls of modules in forward. Where several threads made some (a forward that is
            computed again in backward), numbers of nodes are ambiguous and are not used.
    """
    times = [launch.launch_ns for launch in launches]
    around = names_at(
        [Range(str(i), call.start_ns, call.end_ns) for i, call in enumerate(calls)], times
    )
    in_forward = names_at([Range(m.name, m.start_ns, m.end_ns) for m in modules], times)
    found: list[Operator] = []
    numbered = modules if len({module.thread for module in modules}) == 1 else ()
    of_node = _module_of_node(calls, numbered)
    for place in range(len(launches)):
        call = calls[int(around[place][-1])] if around[place] else None
        module = in_forward[place][-1] if in_forward[place] else None
        if module is None and call is not None and call.node is not None:
            module = of_node.get(call.node)
        found.append((call.name if call else None, module))
    return tuple(found)


def _module_of_node(calls: Sequence[OperatorCall], modules: Sequence[ModuleCall]) -> dict[int, str]:
    nodes = sorted({call.node for call in calls if call.node is not None})
    made = [Range(module.name, module.first_node, module.end_node) for module in modules]
    return {
        node: names[-1] for node, names in zip(nodes, names_at(made, nodes), strict=True) if names
    }


def _mode(torch: Any, clock: Callable[[], int], note: Callable[[OperatorCall], None]) -> Any:
    """A dispatch mode that notes each call and changes nothing."""
    current = getattr(torch._C, "_current_autograd_node", lambda: None)  # noqa: SLF001

    class Noting(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]  # noqa: SLF001
        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            del types
            node = current()
            number = None if node is None else node._sequence_nr()  # noqa: SLF001
            start = clock()
            try:
                return func(*args, **(kwargs or {}))
            finally:
                name = str(getattr(getattr(func, "_schema", None), "name", func))
                note(OperatorCall(name, start, clock(), None if number == _NO_NUMBER else number))

    return Noting()


def _compiles() -> bool:
    """Whether torch.compile is in use."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(getattr(dynamo, "counters", None))
