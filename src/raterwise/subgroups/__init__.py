"""The same metrics within each level of a variable, and each level against the rest."""
