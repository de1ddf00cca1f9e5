"""Which launches of a trace are those that ncu was asked to count. Pure."""

import re
from collections.abc import Callable, Sequence

from mansard.collect.ncu.options import Selection
from mansard.collect.ncu.trace.trace import TracedLaunch
from mansard.errors import UsageError

_REGEX = "regex:"
#: What ncu's notation of ranges has beyond names, domains and nesting.
_QUANTIFIERS = re.compile(r"[*+\[\]|,]")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::")


def chosen_launches(launches: Sequence[TracedLaunch], selection: Selection) -> list[TracedLaunch]:
    """The launches that pass the filters; copies only where kernels are not chosen by name.

    Raises:
        UsageError: a filter cannot be applied to a trace.
    """
    wanted = name_filter(selection.kernel_name)
    include = [range_filter(expression) for expression in selection.nvtx_include]
    exclude = [range_filter(expression) for expression in selection.nvtx_exclude]
    return [
        launch
        for launch in launches
        if (selection.from_start or launch.in_region)
        and (wanted is None or (launch.kind == "kernel" and wanted(function_name(launch.name))))
        and (not include or any(inside(launch.ranges) for inside in include))
        and not any(inside(launch.ranges) for inside in exclude)
    ]


def name_filter(kernel_name: str | None) -> Callable[[str], bool] | None:
    """Whether the name of a function passes, as ncu decides it; None where all do.

    Raises:
        UsageError: the expression is wrong.
    """
    if kernel_name is None:
        return None
    if not kernel_name.startswith(_REGEX):
        return lambda name: name == kernel_name
    try:
        expression = re.compile(kernel_name.removeprefix(_REGEX))
    except re.error as error:
        raise UsageError(f"--kernel-name {kernel_name} is no regular expression: {error}") from None
    return lambda name: expression.search(name) is not None


def range_filter(expression: str) -> Callable[[Sequence[str]], bool]:
    """Whether ranges around a launch match an expression of ncu: ``[DOMAIN@]NAME[/NAME]...[/]``.

    Raises:
        UsageError: it uses more of ncu's notation than a trace can be searched for.
    """
    _, _, path = expression.rpartition("@")
    plain = path.removeprefix(_REGEX)
    is_regex = plain != path
    if not is_regex and _QUANTIFIERS.search(plain):
        raise UsageError(
            f"the range {expression} uses quantifiers of ncu, which a trace cannot be searched "
            "for: give plain names, or take the times from ncu (--times ncu, without --sample)"
        )
    wanted = [name for name in plain.split("/") if name]

    def inside(ranges: Sequence[str]) -> bool:
        if is_regex:
            return all(any(re.search(name, each) for each in ranges) for name in wanted)
        return all(name in ranges for name in wanted)

    return inside


def function_name(demangled: str) -> str:
    """The name of the function alone, without return type, namespaces, arguments, parameters."""
    plain = _ANONYMOUS.sub("", demangled)
    head = re.split(r"[<(]", plain, maxsplit=1)[0].strip()
    return head.rsplit(" ", maxsplit=1)[-1].rsplit("::", maxsplit=1)[-1] or demangled
