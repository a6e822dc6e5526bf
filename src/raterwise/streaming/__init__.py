"""Data larger than memory or than one machine: parts, digests, files, threads, a cluster."""
