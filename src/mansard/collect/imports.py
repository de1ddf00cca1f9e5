"""Acts on a module right after the program has imported it, without importing it itself."""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

_Act = Callable[[ModuleType], None]


@contextlib.contextmanager
def after_import(name: str, act: _Act) -> Iterator[None]:
    """Call ``act`` with a module as soon as it is loaded in the block, or at once if it is.

    Args:
        name: of the module, e.g. ``torch``.
        act: what to do with it; called once at most.
    """
    loaded = sys.modules.get(name)
    if loaded is not None:
        act(loaded)
        yield
        return
    finder = _Finder(name, act)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(finder)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module by asking the other finders, and adds a call to its loader."""

    def __init__(self, name: str, act: _Act) -> None:
        self._name, self._act = name, act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's own specification, with our loader around its loader."""
        del path, target
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._act)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: importlib.abc.Loader, act: _Act) -> None:
        self._inner, self._act = inner, act

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the module's own loader does."""
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load the module, then act."""
        if module.__spec__ is not None:
            # Resources and pickles look at the loader: give them the real one.
            module.__spec__.loader = self._inner
            module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._act(module)
