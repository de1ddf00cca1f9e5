"""What PyTorch does in a step, told by hooks of its own and by wrapping three functions."""

import contextlib
import functools
import importlib
from collections.abc import Callable
from typing import Any

from mansard.collect.torch_phases import Event
from mansard.collect.wrapping import replaced

_Noted = Callable[[Event], None]


class TorchHooks:
    """Hooks in a loaded PyTorch, from ``install`` to ``remove``.

    Module calls are left alone: a hook on them would make ``torch.compile`` compile other code.

    Args:
        torch: the module.
        note: told of backward, optimizer, ``eval()`` and ``train()``.
        stepped: told the identity of each optimizer after its step.
    """

    def __init__(
        self, torch: Any, note: _Noted, stepped: Callable[[int], None] | None = None
    ) -> None:
        self._torch, self._note, self._stepped = torch, note, stepped
        self._undo, self._wrapped = contextlib.ExitStack(), contextlib.ExitStack()
        self._silent = False

    def install(self) -> None:
        """Begin to listen."""
        # The package deletes the attribute of the same name, so it is looked up as a module.
        optimizer = importlib.import_module("torch.optim.optimizer")
        before = optimizer.register_optimizer_step_pre_hook(self._before_step)
        after = optimizer.register_optimizer_step_post_hook(self._after_step)
        self._undo.callback(before.remove)
        self._undo.callback(after.remove)
        autograd, module = self._torch.autograd, self._torch.nn.Module
        for owner, name, wrap in (
            (autograd, "backward", self._around_backward),
            (autograd, "grad", self._around_backward),
            (module, "train", self._after_train),
        ):
            self._wrapped.enter_context(replaced(owner, name, wrap))

    def silence(self) -> None:
        """Stop listening from inside a hook, where PyTorch does not allow to remove it."""
        self._silent = True
        self._wrapped.close()

    def remove(self) -> None:
        """Stop listening; may be called again."""
        self.silence()
        self._undo.close()

    def _before_step(self, *_: object) -> None:
        if not self._silent:
            self._note(Event.OPTIMIZER_BEGIN)

    def _after_step(self, optimizer: object, *_: object) -> None:
        if self._silent:
            return
        self._note(Event.OPTIMIZER_END)
        if self._stepped is not None:
            self._stepped(id(optimizer))

    def _around_backward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def noted(*arguments: Any, **options: Any) -> Any:
            self._note(Event.BACKWARD_BEGIN)
            try:
                return function(*arguments, **options)
            finally:
                self._note(Event.BACKWARD_END)

        return noted

    def _after_train(self, function: Callable[..., Any]) -> Callable[..., Any]:
        depth = 0

        @functools.wraps(function)
        def noted(module: Any, mode: bool = True) -> Any:
            nonlocal depth
            # Module.train calls itself for every child; only the outermost call counts.
            depth += 1
            try:
                return function(module, mode)
            finally:
                depth -= 1
                if not depth:
                    self._note(Event.TRAIN if mode else Event.EVAL)

        return noted
