"""Files in and files out: tables of predictions and ratings, and results that are never half."""
