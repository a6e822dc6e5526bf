"""The one evaluation that all sources of cases share, from a request to results.

`request` says what is asked, `judged` makes estimates of it and of these results, and `warnings`
are what a reader is told beside them.
"""
