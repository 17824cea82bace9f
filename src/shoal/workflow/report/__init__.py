"""Reports: one self-contained HTML file each, rendered from facts collected elsewhere."""

from shoal.workflow.report._assessment import assessment_fragment, assessment_page
from shoal.workflow.report._release_page import release_page

__all__ = ["assessment_fragment", "assessment_page", "release_page"]
