"""The report as one offline HTML file: charts, tables and text that answer to the reader.

``html`` puts the file together, ``data`` and ``compact`` what it holds, ``summary`` and
``sections`` what stands in it as plain text, ``detail`` reads what an Analysis no longer has.
The part that runs in the browser is in ``script/``, with d3 (ISC licence) in ``vendor/``.
"""

from mansard.charts.page.detail import Detail, read_detail
from mansard.charts.page.html import page_html

__all__ = ["Detail", "page_html", "read_detail"]
