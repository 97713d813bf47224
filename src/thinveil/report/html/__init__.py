"""The report: one HTML file that says what an audit showed, and needs nothing else."""

from thinveil.report.html.document import page

__all__ = ["page"]
