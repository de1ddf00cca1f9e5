"""What every page is made of: assets, and a policy that allows its own script and style only.

The content security policy allows the scripts and the style by their hashes and nothing else: no
network, no image, no plug-in, no script in an attribute, no markup made from text.
"""

import base64
import functools
import hashlib
import html
from collections.abc import Mapping
from importlib.resources import files
from string import Template

from mansard.version import __version__


@functools.cache
def asset(name: str) -> str:
    """Return a file that lies beside this module."""
    return files("mansard.charts.page").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def script(*names: str) -> str:
    """Return parts of the script, in the order in which they need one another, as one."""
    parts = "\n".join(asset(f"script/{name}") for name in names)
    return f'(function () {{\n"use strict";\n{parts}\n}})();\n'


def filled(template: str, **words: object) -> str:
    """Fill the places of a template; ``words`` are HTML."""
    return Template(asset(template)).substitute(**words)


def assembled(template: str, scripts: Mapping[str, str], **words: object) -> str:
    """Fill a page.

    Lone surrogates become question marks, so that the result can always be written as UTF-8.

    Args:
        template: name of the page's file.
        scripts: what runs in it, by the name of its place.
        words: what else stands in it, as HTML.
    """
    style = asset("style.css")
    allowed = " ".join(map(_hash, scripts.values())) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    page = filled(
        template, policy=policy, style=style, version=html.escape(__version__), **scripts, **words
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
