"""Metrics: small formulas over summaries, a few lines of NumPy with the equation's number."""
