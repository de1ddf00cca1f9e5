"""Expressions over hardware counters, as they stand in the counter tables.

The language is ``+ - * /``, numbers, parentheses, ``max(a, b, ...)``, ``min(a, b, ...)`` and
counter names such as ``sm__cycles_elapsed.avg.per_second``. An unknown counter makes the whole
expression unknown, and so does a division by zero.
"""

import ast
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Self

from mansard.errors import CounterError

#: Longest formula that is read, in characters.
MAX_LENGTH = 2000

_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}
_FUNCTIONS = ("max", "min")


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float

    def __str__(self) -> str:
        return str(int(self.value)) if self.value.is_integer() else repr(self.value)


@dataclasses.dataclass(frozen=True, slots=True)
class Counter:
    """A hardware counter by its vendor name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """``+ - * /`` of two operands, or ``max`` or ``min`` of two and more."""

    symbol: str
    operands: tuple["Node", ...]

    def __str__(self) -> str:
        if self.symbol in _FUNCTIONS:
            return f"{self.symbol}({', '.join(str(operand) for operand in self.operands)})"
        left, right = self.operands
        precedence = _PRECEDENCE[self.symbol]
        # Operators bind to the left, so a right operand of the same rank keeps its parentheses.
        return f"{_bracketed(left, precedence)} {self.symbol} {_bracketed(right, precedence + 1)}"


Node = Number | Counter | Operation


@dataclasses.dataclass(frozen=True, slots=True)
class Formula:
    """An expression over counters.

    Attributes:
        root: the outermost operation.
    """

    root: Node

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an expression.

        Raises:
            CounterError: for anything outside the language, with the part that is wrong.
        """
        return cls(_parse(text))

    @classmethod
    def counter(cls, name: str) -> Self:
        """The formula that is one counter."""
        return cls(Counter(name))

    @property
    def text(self) -> str:
        """The expression as people read it."""
        return str(self.root)

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of its counters, each once, in order."""
        return tuple(dict.fromkeys(_names(self.root)))

    def sql(self, column_of: Callable[[str], str]) -> str:
        """The expression in DuckDB's SQL, of type DOUBLE.

        Args:
            column_of: gives the (quoted) SQL column of a counter name.
        """
        return _sql(self.root, column_of)

    def evaluate(self, values: Mapping[str, float | None]) -> float | None:
        """Compute the expression; None where a counter is unknown or a divisor is 0.

        Args:
            values: by counter name; a name that is not there is unknown.
        """
        return _evaluate(self.root, values)

    def substitute(self, replacements: Mapping[str, "Formula"]) -> "Formula":
        """Put formulas in the place of counters; other counters stay."""
        return Formula(_substitute(self.root, replacements))

    def __mul__(self, other: "Formula") -> "Formula":
        return Formula(Operation("*", (self.root, other.root)))

    def __truediv__(self, other: "Formula") -> "Formula":
        return Formula(Operation("/", (self.root, other.root)))


def _parse(text: str) -> Node:
    if len(text) > MAX_LENGTH:
        raise CounterError(
            f"formula of {len(text)} characters is too long; at most {MAX_LENGTH} are read"
        )
    try:
        text = " ".join(text.split())
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it cannot be read"
        raise CounterError(f"formula {_shown(text)} is not an expression: {reason}") from error
    try:
        return _node(tree.body, text)
    except RecursionError:
        raise CounterError(f"formula {_shown(text)} is nested too deeply") from None


def _node(node: ast.expr, text: str) -> Node:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            number = float(value) if abs(value) < 2**1023 else math.inf
            if not math.isfinite(number):
                raise CounterError(f"formula {_shown(text)} has a number that is not finite")
            return Number(number)
        case ast.Name() | ast.Attribute():
            return Counter(_counter_name(node, text))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SYMBOLS:
            return Operation(_SYMBOLS[type(operator)], (_node(left, text), _node(right, text)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            if len(arguments) < 2:
                raise CounterError(f"formula {_shown(text)}: {name} needs two operands or more")
            return Operation(name, tuple(_node(argument, text) for argument in arguments))
    part = ast.get_source_segment(text, node) or type(node).__name__
    raise CounterError(
        f"formula {_shown(text)}: {_shown(part)} is not allowed; "
        "only + - * /, numbers, max, min and counter names are"
    )


def _counter_name(node: ast.expr, text: str) -> str:
    match node:
        case ast.Name(id=name):
            if name in _FUNCTIONS:
                raise CounterError(f"formula {_shown(text)}: {name} needs operands")
            return name
        case ast.Attribute(value=inner, attr=part):
            return f"{_counter_name(inner, text)}.{part}"
    raise CounterError(f"formula {_shown(text)}: a counter name starts with a word, then dots")


def _names(node: Node) -> list[str]:
    match node:
        case Counter(name):
            return [name]
        case Operation(_, operands):
            return [name for operand in operands for name in _names(operand)]
    return []


def _sql(node: Node, column_of: Callable[[str], str]) -> str:
    match node:
        case Number(value):
            # The exponent makes it a DOUBLE; without one DuckDB reads DECIMAL.
            text = repr(value)
            return text if "e" in text else f"{text}e0"
        case Counter(name):
            return column_of(name)
        case Operation(symbol, operands):
            parts = [_sql(operand, column_of) for operand in operands]
            if symbol == "/":
                return f"({parts[0]} / nullif({parts[1]}, 0e0))"
            if symbol in _FUNCTIONS:
                # greatest and least skip NULL, but an unknown part makes the whole unknown.
                unknown = " OR ".join(f"{part} IS NULL" for part in parts)
                function = {"max": "greatest", "min": "least"}[symbol]
                return f"CASE WHEN {unknown} THEN NULL ELSE {function}({', '.join(parts)}) END"
            return f"({f' {symbol} '.join(parts)})"


def _evaluate(node: Node, values: Mapping[str, float | None]) -> float | None:
    match node:
        case Number(value):
            return value
        case Counter(name):
            return values.get(name)
        case Operation(symbol, operands):
            known = [_evaluate(operand, values) for operand in operands]
            numbers = [value for value in known if value is not None]
            if len(numbers) < len(known):
                return None
            match symbol:
                case "+":
                    return numbers[0] + numbers[1]
                case "-":
                    return numbers[0] - numbers[1]
                case "*":
                    return numbers[0] * numbers[1]
                case "/":
                    return numbers[0] / numbers[1] if numbers[1] else None
                case "max":
                    return max(numbers)
                case _:
                    return min(numbers)


def _substitute(node: Node, replacements: Mapping[str, Formula]) -> Node:
    match node:
        case Counter(name) if name in replacements:
            return replacements[name].root
        case Operation(symbol, operands):
            return Operation(symbol, tuple(_substitute(each, replacements) for each in operands))
    return node


def _bracketed(node: Node, precedence: int) -> str:
    if isinstance(node, Operation) and _PRECEDENCE.get(node.symbol, 3) < precedence:
        return f"({node})"
    return str(node)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
