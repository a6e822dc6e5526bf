"""Settings of the documentation site: `make docs` builds it, strictly and without a network."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tools")]

import raterwise  # noqa: E402

project = "raterwise"
author = "The raterwise developers"
project_copyright = author
version = release = raterwise.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.typer",
    "plain_docstrings",
]
exclude_patterns = ["_build", "_static", "tutorials"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_ref_domains = ["std"]  # a link to #ece is one to what the metric says, not to the function
suppress_warnings = ["config.cache"]  # what the gallery's functions are is no setting to keep

# One formula engine, shipped with the pages: a hospital's network reaches no other server.
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"raterwise {version}"
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_copy_source = False
html_theme_options = {
    "logo": {"text": "raterwise"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery_of_tutorials",
    "filename_pattern": r"/tutorial_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": (),
    "download_all_examples": False,
    "min_reported_time": 3600,
    "write_computation_times": False,  # its page loads scripts from elsewhere
}


def made_from_the_code(app: Any) -> None:
    """Write the pages that say what the code says, before Sphinx looks for pages."""
    pages = import_module("make_site_pages")
    pages.write(Path(app.srcdir))


def is_of_our_files(record: logging.LogRecord) -> bool:
    """Drop the gallery's warning of blanks in names: it means the folder that the clone lies in."""
    return "with spaces found" not in str(record.msg)


def setup(app: Any) -> None:
    """Hook the pages that are made from the code into the build."""
    logging.getLogger("sphinx.sphinx-gallery").addFilter(is_of_our_files)
    app.connect("builder-inited", made_from_the_code, priority=100)
