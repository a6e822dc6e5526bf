"""The papers' experiments on real data, one package per paper; `python -m experiments` runs them.

Each keeps what its networks say in small files and makes its tables from those, so that it can be
stopped and taken up again, and judged on another machine than it was trained on. What they share:
`training` (one loop), `networks`, `kept` (files made once) and `markdown` (tables).
"""
