"""Where a pass over the predictions runs: here in threads, or on a cluster."""
