"""The report as one offline HTML file: charts, tables and text that answer to the reader.

``html`` puts the file together; ``data``, ``kernel_table``, ``compact`` and ``digits`` make what it
holds; ``summary`` and ``sections`` what stands in it as plain text; ``detail`` and ``strip``
read from the run what an Analysis no longer has. What runs in the browser is in ``script/``, with
d3 (ISC licence) in ``vendor/``.
"""

from mansard.charts.page.detail import Detail, read_detail
from mansard.charts.page.html import page_html

__all__ = ["Detail", "page_html", "read_detail"]
