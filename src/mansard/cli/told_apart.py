"""Short names for files that are called alike."""

from collections import Counter
from collections.abc import Sequence


def told_apart(paths: Sequence[str]) -> list[str]:
    """Paths or URLs from their end, as short as tells them apart; one twice gets numbers."""
    parts = [tuple(path.rstrip("/").split("/")) for path in paths]
    different = len(set(parts))
    depth = 1
    while len({each[-depth:] for each in parts}) < different:
        depth += 1
    names = ["/".join(each[-depth:]) for each in parts]
    counts, seen = Counter(names), Counter[str]()
    for place, name in enumerate(names):
        if counts[name] > 1:
            seen[name] += 1
            names[place] = f"{name}, {seen[name]}"
    return names
