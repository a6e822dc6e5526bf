"""Larger than memory, larger than a machine: parts, digests, files, threads, a cluster."""
