r"""How a file writes numbers, and the SQL that reads them.

``117.344`` is a fraction where the point is decimal, and 117344 where it groups thousands: no
single value tells, so the convention is one for the whole file, by the values that can mean only
one thing: ``65,77`` and ``27.595.520`` on one side, ``65.77`` and ``27,595,520`` on the other.
"""

import dataclasses

from mansard.engine import literal

#: Spaces of all widths that people put between thousands, and the Swiss apostrophes.
_SPACES = (
    " '\N{NO-BREAK SPACE}\N{THIN SPACE}\N{NARROW NO-BREAK SPACE}\N{RIGHT SINGLE QUOTATION MARK}"
)
#: Values of the instances of a metric, behind its own: ``1,234 (12; 34)``.
_INSTANCES = r" \(.*$"


@dataclasses.dataclass(frozen=True, slots=True)
class Convention:
    """The way of a file to write numbers.

    Attributes:
        decimal: the decimal sign, point or comma; the other one groups thousands.
        mixed: whether some values are written otherwise, so that each must be looked at.
    """

    decimal: str = "."
    mixed: bool = False

    @property
    def grouping(self) -> str:
        """The sign between thousands."""
        return "," if self.decimal == "." else "."


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """Numbers of rows with values that can mean only one thing.

    Attributes:
        point: the decimal sign is the point.
        comma: it is the comma.
        spaced: spaces or apostrophes stand inside a value, or more values behind it.
    """

    point: int = 0
    comma: int = 0
    spaced: int = 0

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(
            self.point + other.point, self.comma + other.comma, self.spaced + other.spaced
        )

    def convention(self) -> Convention:
        """Decide. Without evidence the point is decimal, as in every file from Linux."""
        if self.comma > self.point:
            return Convention(",", mixed=self.point > 0 or self.spaced > 0)
        return Convention(".", mixed=self.comma > 0 or self.spaced > 0)


def unusual_sql(cells: str) -> str:
    """An aggregate: whether some value does not fit the usual way, point and commas.

    Args:
        cells: SQL of a text that holds the values of a row, each between vertical bars.
    """
    pattern = literal(rf"{_decisive(',', '.')}|{_spaced()}|\d \(")
    return f"coalesce(bool_or(regexp_matches({cells}, {pattern})), false)"


def evidence_sql(cells: str) -> str:
    """Three aggregates that make an ``Evidence``; ``cells`` as for ``unusual_sql``."""
    return ", ".join(
        f"count(*) FILTER (regexp_matches({cells}, {literal(pattern)}))"
        for pattern in (_decisive(".", ","), _decisive(",", "."), rf"{_spaced()}|\d \(")
    )


def si_terms(factor: float) -> tuple[float, float]:
    """A factor as a product and a divisor, since 300000 / 1e9 is exact and 300000 * 1e-9 is not."""
    return (factor, 1.0) if factor >= 1 else (1.0, float(round(1 / factor)))


def number_sql(text: str, convention: Convention) -> str:
    """The value of a text as DOUBLE; null where it is no number.

    Args:
        text: SQL of a VARCHAR column.
        convention: of the file.
    """
    grouping = literal(convention.grouping)
    if not convention.mixed:
        plain = f"replace({text}, {grouping}, '')"
    else:
        own = f"regexp_replace({text}, {literal(_INSTANCES)}, '')"
        packed = f"regexp_replace({own}, {literal(f'[{_SPACES}]')}, '', 'g')"
        shape = literal(_shape(convention))
        plain = (
            f"CASE WHEN regexp_full_match({packed}, {shape}) "
            f"THEN replace({packed}, {grouping}, '') END"
        )
    if convention.decimal == ",":
        plain = f"replace({plain}, ',', '.')"
    return f"try_cast({plain} AS DOUBLE)"


def unread_sql(text: str, convention: Convention) -> str:
    """Condition: the text is made of digits and signs, and yet no number in this convention."""
    digits = literal(rf"[-+]?\d[\d.,{_SPACES}]*")
    return f"regexp_full_match({text}, {digits}) AND {number_sql(text, convention)} IS NULL"


def _decisive(decimal: str, grouping: str) -> str:
    """Pattern of a value in which ``decimal`` can only be the decimal sign."""
    d, g = f"[{decimal}]", f"[{grouping}]"
    forms = (
        rf"0?{d}\d+",  # 0.123
        rf"[\d{_SPACES}]+{d}(\d{{1,2}}|\d{{4,}})",  # 65.77, 12.455812
        rf"\d{{4,}}{d}\d+",  # 1234.567
        rf"\d+{d}\d*[eE][-+]?\d+",  # 1.234e+06
        rf"\d{{1,3}}({g}\d{{2,3}})*{g}\d{{3}}{d}\d*",  # 1,234.567
        rf"\d{{1,3}}({g}\d{{3}}){{2,}}",  # 27,595,520
    )
    return rf"\|[-+]?({'|'.join(forms)})\|"


def _spaced() -> str:
    return rf"\d[{_SPACES}]\d{{3}}"


def _shape(convention: Convention) -> str:
    d, g = f"[{convention.decimal}]", f"[{convention.grouping}]"
    # Groups of two are Indian: 12,34,567.
    return rf"[-+]?(\d+|\d{{1,3}}({g}\d{{2,3}})*{g}\d{{3}})?({d}\d*)?([eE][-+]?\d+)?"
