"""Reports for people: results as one HTML file that opens without a network, and as tables."""

from raterwise.report.build import report_html, write_report
from raterwise.report.comparison import comparison_html, write_comparison
from raterwise.report.tables import as_csv, as_latex, as_markdown

__all__ = [
    "as_csv",
    "as_latex",
    "as_markdown",
    "comparison_html",
    "report_html",
    "write_comparison",
    "write_report",
]
