"""Which launches of two runs belong together: by name, short name, then family and shape."""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from mansard.model.analysis import Group, Kernel


@dataclasses.dataclass(frozen=True, slots=True)
class Match:
    """Groups of two runs that stand in one row.

    Attributes:
        by: ``name``, ``short name``, ``family and shape``, ``only a`` or ``only b``.
        a: those of the first run.
        b: those of the second.
    """

    by: str
    a: tuple[Group, ...]
    b: tuple[Group, ...]

    @property
    def key(self) -> str | None:
        """The name of the row: that of the longest in the first run that has any."""
        return (self.a or self.b)[0].key

    @property
    def kernel(self) -> Kernel | None:
        """The kernel that gives its short name and family to a row of kernels."""
        first = (self.a or self.b)[0]
        return first if isinstance(first, Kernel) else None


def match_groups(a: Iterable[Group], b: Iterable[Group]) -> list[Match]:
    """Match families, phases, modules, ... by name, then by name without regard to case."""
    return _match(
        a,
        b,
        (("name", lambda group: (group.key,)), ("name", lambda group: _folded(group.key))),
    )


def match_kernels(
    a: Sequence[Kernel],
    b: Sequence[Kernel],
    shapes_a: Callable[[], Mapping[str | None, int]],
    shapes_b: Callable[[], Mapping[str | None, int]],
) -> list[Match]:
    """Match kernels.

    Several kernels that only their short name or shape tells apart from others are taken
    together: which of them became which cannot be known.

    Args:
        a: those of the first run.
        b: those of the second.
        shapes_a: gives, by key, a number that is equal for equal sets of grids and blocks; only
            called when names alone do not match everything.
        shapes_b: the same of the second run.
    """
    found = _match(
        a,
        b,
        (
            ("name", lambda group: (group.key,)),
            ("short name", lambda group: group.short_name if isinstance(group, Kernel) else None),
        ),
    )
    left_a = [group for match in found if match.by == "only a" for group in match.a]
    left_b = [group for match in found if match.by == "only b" for group in match.b]
    if not left_a or not left_b:
        return found
    # By identity: the two sides never share a group, but may share its key.
    of_a = {id(group) for group in left_a}
    known_a, known_b = shapes_a(), shapes_b()

    def shape(group: Group) -> Hashable | None:
        shapes = known_a if id(group) in of_a else known_b
        if not isinstance(group, Kernel) or group.key not in shapes or group.family == "other":
            return None
        return group.family, shapes[group.key]

    matched = [match for match in found if not match.by.startswith("only")]
    return matched + _match(left_a, left_b, (("family and shape", shape),))


_Rule = tuple[str, Callable[[Group], Hashable | None]]


def _match(a: Iterable[Group], b: Iterable[Group], rules: Iterable[_Rule]) -> list[Match]:
    left_a, left_b = list(a), list(b)
    found = []
    for by, key_of in rules:
        keyed_a, keyed_b = _by(left_a, key_of), _by(left_b, key_of)
        common = [key for key in keyed_a if key in keyed_b]
        found += [Match(by, tuple(keyed_a[key]), tuple(keyed_b[key])) for key in common]
        taken = set(common)
        left_a = [group for group in left_a if key_of(group) not in taken]
        left_b = [group for group in left_b if key_of(group) not in taken]
    found += [Match("only a", (group,), ()) for group in left_a]
    found += [Match("only b", (), (group,)) for group in left_b]
    return found


def _by(
    groups: Iterable[Group], key_of: Callable[[Group], Hashable | None]
) -> dict[Hashable, list[Group]]:
    keyed: dict[Hashable, list[Group]] = {}
    for group in groups:
        key = key_of(group)
        if key is not None:
            keyed.setdefault(key, []).append(group)
    return keyed


def _folded(key: str | None) -> Hashable | None:
    return None if key is None else key.casefold()
