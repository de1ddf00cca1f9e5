"""What the validating parent and its child process say to each other, one JSON value a line."""

from typing import Literal

import msgspec

from mansard.bench.messages import Opened
from mansard.model.provenance import Definition
from mansard.validate.cases import Case


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the parent asks of a child.

    Attributes:
        do: ``open`` a device, read its ``limits``, or ``count`` cases.
        device: index of the device (open).
        cases: to count, all in one step of one profile (count).
    """

    do: Literal["open", "limits", "count"]
    device: int = 0
    cases: tuple[Case, ...] = ()


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The device as the child found it.

    Attributes:
        opened: facts, numbers, texts.
        chip: name in the counter library.
        table: name of the counter table.
        cupti: version of CUPTI.
    """

    opened: Opened
    chip: str
    table: str
    cupti: str = ""


class CaseCount(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted of one case.

    Attributes:
        name: of the case.
        columns: columns of a run, summed over the launches of the case; None for unknown.
        launches: kernels that the case launched.
        lacking: why this machine cannot run the case; nothing was counted then.
        loop_flop: FLOP of a thread and iteration, as its machine code tells; None if not known.
        once_flop: FLOP of a thread outside the loop that may count besides.
        parts: of each sum, as the library says that it forms them; 1 for one sum.
    """

    name: str
    columns: dict[str, float | None] = {}
    launches: int = 0
    lacking: str = ""
    loop_flop: float | None = None
    once_flop: float = 0.0
    parts: int = 1


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted of a batch.

    Attributes:
        cases: in the order of the request.
        definitions: how each column was made.
        remarks: what the collector warned of.
    """

    cases: tuple[CaseCount, ...]
    definitions: dict[str, Definition] = {}
    remarks: tuple[str, ...] = ()


class LimitValues(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of the limits, by name; None for unknown."""

    values: dict[str, float | None]
    base_counters: tuple[str, ...]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one request: one of its fields.

    Attributes:
        error: message for the user; the request could not be served.
        slug: paragraph of docs/messages.md about it.
        refused: whether the driver refuses counters altogether, so that nothing else can work.
    """

    opening: Opening | None = None
    limits: LimitValues | None = None
    counted: Counted | None = None
    error: str | None = None
    slug: str = ""
    refused: bool = False
