"""The page docs/counters.md, made from the tables so that it never differs from them."""

from collections.abc import Iterator

from mansard.counters.table import Alternative, CounterTable, tables
from mansard.model.columns import QUANTITY_COLUMNS
from mansard.model.notice import Notice

_HEAD = """\
# Counters

What each column of a run is made of, per chip. This page is made from the tables in
`src/mansard/counters/tables/` by `python -m mansard.counters > docs/counters.md`.

How to read it:

- A table holds for the chips that it names. For any other chip the table `generic` defines only
  what means the same everywhere.
- The ways to make a column stand best first. For each file the first is taken whose counters the
  file has, and the file's own definitions go with the run.
- `smsp__X.sum` stands for `sm__X.sum` (the same total) for counts of instructions. Where a file
  has rates alone (`X.sum.per_cycle_elapsed`, `X.sum.per_second`), the count is the rate times the
  elapsed cycles of the unit or times the time, and is marked as derived.
- A path that a chip lacks is 0. What was not collected is unknown, which is not 0.
- A total and its parts are never added. NVIDIA's names of tensor operations share one prefix
  for totals, kinds of instructions and sparsity; a sum over the prefix counts two or three times.
- A 2:4 sparse instruction counts the zeros that it skips: on an H200 the library's own peak of
  the `_sparsity_on` counters is twice that of `_sparsity_off`, and the peak of a total is the
  sparse one. The dense roof is half of it.
- "512 operations per tensor instruction" holds for Volta alone. On Hopper it is wrong by a factor
  of 4 to 256, and softmax kernels execute tensor-pipe instructions without tensor operations.
- Half-precision instructions of the CUDA cores count as packed pairs (`vendor`: add 2, mul 2,
  fma 4, as in Nsight Compute) or as single values (`unpacked`: 1, 1, 2, as in the paper).
- A half-precision instruction may convert and not calculate: on an H200 a kernel that multiplies
  2^26 fp16 values in fp32 showed 2^26 HADD2 thread instructions, all of them conversions.
- "Not verified" means: taken from the source, and not yet compared with known work on such a
  chip.
- Counters that begin with `derived__` are made by Nsight Compute itself; no other collector has
  them.
"""


def counters_page() -> str:
    """The whole page, in Markdown."""
    every = tables()
    lines = [_HEAD, "## Chips", "", "| table | chips | compute capability | half precision |"]
    lines.append("|---|---|---|---|")
    lines += [
        f"| `{table.name}` | {table.title}{_listed(table.chips)} "
        f"| {', '.join(table.compute_capabilities) or '-'} | {table.half_weights} |"
        for table in every
    ]
    lines.append("")
    for column in QUANTITY_COLUMNS:
        lines += [
            f"## `{column.name}`",
            "",
            f"{column.meaning[0].upper()}{column.meaning[1:]}.",
            "",
        ]
        for names, definition in _shared(every, column.name):
            lines += [f"**{', '.join(names)}**", ""]
            lines += _shown(definition)
            lines.append("")
    lines += ["## Evidence of idle units", ""]
    lines.append("A launch for which the counter is 0 did no work in these columns.")
    for table in every:
        for counter, columns in table.evidence.items():
            listed = ", ".join(f"`{column}`" for column in columns)
            lines += ["", f"- `{table.name}`: `{counter}`: {listed}"]
    return "\n".join(lines) + "\n"


def _listed(chips: tuple[str, ...]) -> str:
    return f": {', '.join(chips)}" if chips else ""


def _shared(
    every: tuple[CounterTable, ...], column: str
) -> Iterator[tuple[list[str], tuple[Alternative, ...] | Notice]]:
    """Each definition of a column once, with the tables that have it."""
    found: list[tuple[list[str], tuple[Alternative, ...] | Notice]] = []
    for table in every:
        definition = table.quantities.get(column) or table.unavailable[column]
        names = next((names for names, known in found if known == definition), None)
        if names is None:
            found.append(([table.name], definition))
        else:
            names.append(table.name)
    yield from found


def _shown(definition: tuple[Alternative, ...] | Notice) -> Iterator[str]:
    if isinstance(definition, Notice):
        yield f"Unknown. {definition.message}"
        return
    for number, each in enumerate(definition, start=1):
        weights = f"half precision `{each.half_weights}`: " if each.half_weights else ""
        yield f"{number}. {weights}`{each.formula.text}`  "
        yield f"   {each.meaning[0].upper()}{each.meaning[1:]}.  "
        if each.notice is not None:
            yield f"   Caveat (`{each.notice.code}`): {each.notice.message}  "
        where = "; ".join(each.verified_on)
        verified = f"Verified: {where}" if where else "Not verified"
        yield f"   Source: {each.source}. {verified}."
