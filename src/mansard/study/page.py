"""A report as one HTML file that loads nothing: pictures are inside, all text is escaped."""

import base64
import html
import itertools
from collections.abc import Iterator
from pathlib import Path

from mansard.charts.labels import printable
from mansard.study.blocks import Block, Blocks, Figure, Heading, Items, Paragraph, Table

_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}
_MOST = 2000

#: Nothing may be loaded and no script may run, whatever a name holds.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1400px; margin: 2rem auto;
       padding: 0 1rem; color: #1a1a1a; background: #fff; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.4rem;
     border-bottom: 1px solid #ccc; } h3 { font-size: 1.05rem; margin-top: 1.6rem; }
p, li { max-width: 80ch; overflow-wrap: anywhere; }
.strong { border-left: 4px solid #b35900; padding: .4rem .8rem; background: #fff6ea;
          font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid #ddd;
         white-space: nowrap; }
th { border-bottom: 2px solid #888; } tbody tr:hover td { background: #f3f5f7; }
.w { text-align: left; vertical-align: top; } td.w { white-space: normal; min-width: 7rem; }
.n { position: sticky; left: 0; background: #fff; }
figure { margin: 1rem 0; } img { max-width: 100%; background: #fff; }
figcaption { font-size: 13px; color: #555; }
nav a { margin-right: 1rem; white-space: nowrap; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #16181b; } h2 { border-color: #444; }
  .n { background: #16181b; }
  th, td { border-color: #3a3d42; } tbody tr:hover td { background: #1e2125; }
  .strong { background: #33260f; } figcaption { color: #aaa; } a { color: #8ab8ff; } }
@media print { body { max-width: none; } .wide { overflow: visible; } }
"""


def page(blocks: Blocks, folder: Path) -> str:
    """Return the report as HTML.

    Args:
        blocks: the report; its first heading is the title.
        folder: where the files of its figures lie; one that is missing is said to be.
    """
    heading = next((b.text for b in blocks if isinstance(b, Heading)), "Study")
    links = " ".join(
        f'<a href="#s{number}">{_escaped(block.text)}</a>'
        for number, block in enumerate(blocks)
        if isinstance(block, Heading) and block.level == 2
    )
    body: list[str] = []
    for number, block in enumerate(blocks):
        body.append(_html(block, number, folder))
        if isinstance(block, Heading) and block.level == 1:
            body.append(f"<nav>{links}</nav>")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escaped(heading)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _html(block: Block, number: int, folder: Path) -> str:
    match block:
        case Heading():
            level = min(6, block.level)
            return f'<h{level} id="s{number}">{_escaped(block.text)}</h{level}>'
        case Paragraph():
            mark = ' class="strong"' if block.strong else ""
            return f"<p{mark}>{_escaped(block.text)}</p>"
        case Items():
            return f"<ul>{''.join(f'<li>{_escaped(text)}</li>' for text in block.texts)}</ul>"
        case Figure():
            return _figure(block, folder)
        case Table():
            head = _row(block.head, block.words, "th")
            rows = "\n".join(_body(block))
            return (
                f'<div class="wide"><table><thead>{head}</thead>\n<tbody>{rows}</tbody>'
                "</table></div>"
            )


def _body(table: Table) -> Iterator[str]:
    """Rows; where several words lead, the first stands once for the rows that share it."""
    if table.words < 2:
        yield from (_row(row, table.words, "td") for row in table.rows)
        return
    for name, group in itertools.groupby(table.rows, key=lambda row: row[0]):
        rows = list(group)
        first = f'<td class="w n" rowspan="{len(rows)}">{_escaped(name)}</td>'
        for place, row in enumerate(rows):
            rest = _cells(row[1:], table.words - 1, "td")
            yield f"<tr>{'' if place else first}{rest}</tr>"


def _row(cells: tuple[str, ...], words: int, tag: str) -> str:
    """A row whose name stays in sight where the table is wider than the screen."""
    name = f'<{tag} class="w n">{_escaped(cells[0])}</{tag}>'
    return f"<tr>{name}{_cells(cells[1:], words - 1, tag)}</tr>"


def _cells(texts: tuple[str, ...], words: int, tag: str) -> str:
    """Cells of a row; as many as lead with words stand on the left."""
    marks = (' class="w"' if place < words else "" for place in range(len(texts)))
    return "".join(
        f"<{tag}{mark}>{_escaped(text)}</{tag}>" for mark, text in zip(marks, texts, strict=True)
    )


def _figure(block: Figure, folder: Path) -> str:
    file = folder / block.file
    kind = _TYPES.get(file.suffix)
    if kind is None or not file.is_file():
        return f"<p>{_escaped(f'The picture {block.file} is missing: {block.text}')}</p>"
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    return (
        f'<figure><img alt="{_escaped(block.text)}" src="data:{kind};base64,{data}">'
        f"<figcaption>{_escaped(block.text)}</figcaption></figure>"
    )


def _escaped(text: str) -> str:
    return html.escape(printable(text, _MOST))
