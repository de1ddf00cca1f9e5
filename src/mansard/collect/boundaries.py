"""Where the iterations of an unchanged program begin and end."""

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Protocol

from mansard.collect.imports import after_import
from mansard.collect.iterations import OptimizerCycle
from mansard.collect.marks import MarkRecorder, listening
from mansard.collect.torch_hooks import TorchHooks
from mansard.collect.torch_phases import Event
from mansard.collect.wrapping import replaced
from mansard.errors import UsageError


class Steps(Protocol):
    """Is told of iterations."""

    @property
    def done(self) -> bool:
        """Whether nothing more is wanted."""

    def begin_step(self) -> None:
        """An iteration begins."""

    def end_step(self) -> None:
        """It has ended."""

    def next_step(self) -> None:
        """One has ended, and the next begins."""

    def note(self, event: Event) -> None:
        """PyTorch did something."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """How iterations are told apart.

    Attributes:
        kind: ``optimizer``, ``cudaProfilerStart``, ``range`` or ``call``.
        what: name of the range, or ``module:function``.
    """

    kind: str
    what: str = ""

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Read ``optimizer``, ``cudaProfilerStart``, ``range NAME`` or ``call module:function``.

        Raises:
            UsageError: it is none of these.
        """
        if text in ("optimizer", "cudaProfilerStart"):
            return cls(text)
        found = re.fullmatch(r"(range|call)[ :](.+)", text.strip())
        if found is None or (found[1] == "call" and ":" not in found[2]):
            raise UsageError(
                f"--iterations-by '{text}' is not one of: optimizer, cudaProfilerStart, "
                "'range NAME', 'call module:function'"
            )
        return cls(found[1], found[2].strip())


@contextlib.contextmanager
def boundaries(rule: Rule, steps: Steps) -> Iterator[None]:
    """Tell ``steps`` of the iterations of the program that runs in the block."""
    with contextlib.ExitStack() as scope:
        if rule.kind == "range":
            scope.enter_context(_ranges(rule.what, steps))
        elif rule.kind == "call":
            module, _, function = rule.what.partition(":")
            watch = functools.partial(_wrap_call, function, steps, scope)
            scope.enter_context(after_import(module, watch))
        scope.enter_context(
            after_import("torch", functools.partial(_hook_torch, rule, steps, scope))
        )
        yield


def _hook_torch(rule: Rule, steps: Steps, scope: contextlib.ExitStack, torch: ModuleType) -> None:
    cycle = OptimizerCycle()

    def stepped(optimizer: int) -> None:
        if rule.kind == "optimizer" and cycle.step(optimizer):
            steps.next_step()
        if steps.done:
            hooks.silence()

    hooks = TorchHooks(torch, steps.note, stepped)
    hooks.install()
    scope.callback(hooks.remove)
    if rule.kind == "cudaProfilerStart":
        # torch.cuda.cudart() would start CUDA here; the module behind it does not.
        runtime = torch._C._cudart  # noqa: SLF001
        for name, act in (
            ("cudaProfilerStart", steps.begin_step),
            ("cudaProfilerStop", steps.end_step),
        ):
            scope.enter_context(replaced(runtime, name, functools.partial(_then, act=act)))
    if rule.kind == "range":
        scope.enter_context(_torch_ranges(torch.cuda.nvtx, rule.what, steps))


def _then(function: Callable[..., Any], act: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(function)
    def acting(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        act()
        return result

    return acting


def _wrap_call(path: str, steps: Steps, scope: contextlib.ExitStack, module: ModuleType) -> None:
    owner: Any = module
    *outer, name = path.split(".")
    try:
        for part in outer:
            owner = getattr(owner, part)
        getattr(owner, name)
    except AttributeError:
        raise UsageError(f"--iterations-by: {module.__name__} has no '{path}'") from None

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def one_step(*arguments: Any, **options: Any) -> Any:
            steps.begin_step()
            try:
                return function(*arguments, **options)
            finally:
                steps.end_step()

        return one_step

    scope.enter_context(replaced(owner, name, wrap))


@contextlib.contextmanager
def _ranges(name: str, steps: Steps) -> Iterator[None]:
    """Iterations from ``mansard.phase(name)``."""

    class Listener(MarkRecorder):
        def begin(self, opened: str) -> int:
            if opened == name:
                steps.begin_step()
            return int(opened == name)

        def end(self, token: int) -> None:
            if token:
                steps.end_step()

    with listening(Listener(lambda: 0)):
        yield


@contextlib.contextmanager
def _torch_ranges(nvtx: Any, name: str, steps: Steps) -> Iterator[None]:
    """Iterations from ``torch.cuda.nvtx`` ranges, pushed or started."""
    pushed: list[str] = []
    started: set[int] = set()

    def pop() -> None:
        if pushed and pushed.pop() == name:
            steps.end_step()

    def around_push(old: Callable[..., Any]) -> Callable[..., Any]:
        def push(message: str) -> Any:
            result = old(message)
            pushed.append(message)
            if message == name:
                steps.begin_step()
            return result

        return functools.wraps(old)(push)

    def around_start(old: Callable[..., Any]) -> Callable[..., Any]:
        def start(message: str) -> Any:
            token = old(message)
            if message == name:
                started.add(token)
                steps.begin_step()
            return token

        return functools.wraps(old)(start)

    def around_end(old: Callable[..., Any]) -> Callable[..., Any]:
        def end(token: int) -> Any:
            if token in started:
                started.discard(token)
                steps.end_step()
            return old(token)

        return functools.wraps(old)(end)

    with contextlib.ExitStack() as scope:
        for function, wrap in (
            ("range_push", around_push),
            ("range_pop", lambda old: _then(old, pop)),
            ("range_start", around_start),
            ("range_end", around_end),
        ):
            scope.enter_context(replaced(nvtx, function, wrap))
        yield
