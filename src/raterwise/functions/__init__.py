"""The public metric functions: check the input, summarise it, apply the catalog's formula."""
