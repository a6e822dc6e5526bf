"""Reading and writing files: tables of predictions and ratings, and results written atomically."""
