"""The hot loops: `_numba` on the CPU, the same few functions per device."""
