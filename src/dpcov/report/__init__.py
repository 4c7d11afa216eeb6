"""The report: one HTML page about a release, made from the release and its ledger alone.

`report_data` collects what there is to say as plain data; `render_page` turns it into a page that needs no
network. Everything is post-processing of private answers, and the same release gives the same bytes.
"""

from dpcov.report.content import ReportData
from dpcov.report.data import report_data
from dpcov.report.render import render_page, write_report

__all__ = ["ReportData", "render_page", "report_data", "write_report"]
