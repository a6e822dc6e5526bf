"""Multi-label tasks: several yes-or-no findings per case, each and on average."""
