"""Offline HTML files: charts, tables and text that answer to the reader.

``html`` puts the report together, ``comparison`` that of two runs, ``machines`` that of machines;
``assemble`` is what all have: assets and policy. For the report ``data``, ``kernel_table``,
``compact`` and ``digits`` make what it holds; ``summary`` and ``sections`` what stands in it as
plain text; ``detail`` and ``strip`` read from the run what an Analysis no longer has. For a
comparison ``changes_data`` and ``changes_html`` do the same. What runs in the browser is in
``script/``, with d3 (ISC licence) in ``vendor/``.
"""

from mansard.charts.page.comparison import comparisons_page
from mansard.charts.page.detail import Detail, read_detail
from mansard.charts.page.html import page_html
from mansard.charts.page.machines import machines_page

__all__ = ["Detail", "comparisons_page", "machines_page", "page_html", "read_detail"]
