"""Pages that repeat what the code says are current. Run this file to rewrite them."""

import re
import sys
from pathlib import Path

from mansard.model.columns import RUN_COLUMNS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "run-format.md"
_BLOCK = re.compile(r"(<!-- columns:begin[^\n]*-->\n).*?(<!-- columns:end -->)", re.DOTALL)


def _with_columns(text: str) -> str:
    rows = ["| column | type | meaning |", "|---|---|---|"]
    rows += [f"| `{c.name}` | {c.sql_type} | {c.meaning} |" for c in RUN_COLUMNS]
    return _BLOCK.sub(lambda match: match[1] + "\n".join(rows) + "\n" + match[2], text)


def test_the_page_of_the_run_file_lists_the_columns_of_the_code():
    text = PAGE.read_text(encoding="utf-8")
    assert _with_columns(text) == text, "run: python tests/contract/test_docs.py"


def test_every_link_between_pages_leads_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


if __name__ == "__main__":
    PAGE.write_text(_with_columns(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"rewrote {PAGE.name}\n")
