"""A report as Markdown. All text is escaped: names come from binaries and other people's files."""

import re

from mansard.charts.labels import printable
from mansard.study.blocks import Block, Blocks, Figure, Heading, Items, Paragraph, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]|~])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}

#: Letters of one text.
_MOST = 2000


def markdown(blocks: Blocks) -> str:
    """Return Markdown text with a final line end."""
    return "\n".join(line for block in blocks for line in (*_lines(block), "")).rstrip() + "\n"


def _lines(block: Block) -> list[str]:
    match block:
        case Heading():
            return [f"{'#' * block.level} {_escaped(block.text)}"]
        case Paragraph():
            text = _escaped(block.text)
            return [f"**{text}**" if block.strong else text]
        case Items():
            return [f"- {_escaped(text)}" for text in block.texts]
        case Figure():
            return [f"![{_escaped(block.text)}]({block.file.replace(' ', '%20')})"]
        case Table():
            rule = ["---"] * block.words + ["--:"] * (len(block.head) - block.words)
            rows = (block.head, tuple(rule), *block.rows)
            return [
                f"| {' | '.join(row if number == 1 else map(_escaped, row))} |"
                for number, row in enumerate(rows)
            ]


def _escaped(text: str) -> str:
    """Text that no Markdown reader takes for markup, a mention or HTML."""
    text = _SPECIAL.sub(r"\\\1", printable(text, _MOST))
    return "".join(_ENTITIES.get(letter, letter) for letter in text)
