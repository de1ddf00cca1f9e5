"""Every warning and every error that points further has a paragraph in docs/messages.md."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "mansard"
PAGE = ROOT / "docs" / "messages.md"
_TOML_CODE = re.compile(
    r'^\s*(?:code\s*=|caveat\s*=\s*\{\s*code\s*=)\s*"([a-z0-9-]+)"', re.MULTILINE
)


def _codes():
    found = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                # The JSON report adds a warning of its own.
                for key, value in zip(node.keys, node.values, strict=True):
                    is_code = isinstance(key, ast.Constant) and key.value == "code"
                    if is_code and isinstance(value, ast.Constant):
                        found[value.value] = path.name
            if not isinstance(node, ast.Call):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called == "Notice" and node.args and isinstance(node.args[0], ast.Constant):
                found[node.args[0].value] = path.name
            for keyword in node.keywords:
                is_slug = keyword.arg in ("slug", "code") and called.endswith(("Error", "Notice"))
                if is_slug and isinstance(keyword.value, ast.Constant):
                    found[keyword.value.value] = path.name
    page = SOURCE / "charts" / "page" / "data.py"
    found |= dict.fromkeys(re.findall(r'found\["(page-[a-z]+)"\]', page.read_text()), page.name)
    for path in SOURCE.rglob("*.toml"):
        text = path.read_text(encoding="utf-8")
        for code in (*_TOML_CODE.findall(text), *tomllib.loads(text).get("notices", ())):
            found[code] = path.name
    return found


def test_every_code_has_a_paragraph():
    headings = set(re.findall(r"^## (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    missing = {code: where for code, where in _codes().items() if code not in headings}
    assert missing == {}


def test_no_paragraph_is_for_a_code_that_is_gone():
    headings = set(re.findall(r"^## (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    # Codes built from a concept's name, such as l2-not-collected, are not constants.
    built = {code for code in headings if code.endswith("-not-collected")}
    assert headings - built - set(_codes()) == set()
