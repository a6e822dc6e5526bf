"""Sums of resampled units: what a product of multiplicities × tables would give, from entries.

A table per unit is mostly zeros: a patient is in few of the bins, a case in one. So the product
runs over the entries that there are, and takes eight resamples at once, side by side in memory.
Every resample adds in the order of the entries, whatever the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["TOGETHER", "occupied_cells", "resample_entries"]

Array = Any

TOGETHER = 8
"""How many resamples are added up at once: the floats of one cache line."""


@intrinsic  # type: ignore[untyped-decorator]
def _add_together(typing: Any, sums: Any, to: Any, times: Any, of: Any, value: Any) -> Any:
    """Add value × times[of … of+7] to sums[to … to+7], as one vector.

    Written out, because the compiler must allow for two arrays that overlap and would do it in
    eight steps.
    """
    signature = types.void(sums, types.int64, times, types.int64, types.float64)
    eight = ir.VectorType(ir.DoubleType(), TOGETHER)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def at(i: int) -> Any:
            array = context.make_array(signature.args[i])(context, builder, value=args[i])
            return builder.bitcast(builder.gep(array.data, [args[i + 1]]), eight.as_pointer())

        nothing = ir.Constant(eight, ir.Undefined)
        one = builder.insert_element(nothing, args[4], ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), TOGETHER), [0] * TOGETHER)
        value = builder.shuffle_vector(one, nothing, lanes)
        product = builder.fmul(builder.load(at(2), align=8), value)
        builder.store(builder.fadd(builder.load(at(0), align=8), product), at(0), align=8)
        return context.get_dummy_value()

    return signature, generate


@njit(nogil=True, cache=True)
def occupied_cells(table: Array) -> tuple[Array, Array, Array]:
    """Return the entries of `table` (units, cells, fields): unit, cell and fields of each."""
    units, cells, fields = table.shape
    occupied = np.zeros((units, cells), np.bool_)
    number = 0
    for u in range(units):
        for c in range(cells):
            for f in range(fields):
                if table[u, c, f] != 0.0:
                    occupied[u, c] = True
            number += occupied[u, c]
    unit, cell = np.empty(number, np.int64), np.empty(number, np.int64)
    values = np.empty((number, fields))
    i = 0
    for u in range(units):
        for c in range(cells):
            if occupied[u, c]:
                unit[i], cell[i] = u, c
                for f in range(fields):
                    values[i, f] = table[u, c, f]
                i += 1
    return unit, cell, values


@njit(nogil=True, cache=True)
def resample_entries(times: Array, unit: Array, cell: Array, values: Array, out: Array) -> None:
    """Add up the entries as often as each of at most TOGETHER resamples draws their unit.

    `times` is (resamples, units), `out` (resamples, cells, fields).
    """
    resamples, units = times.shape
    _, cells, fields = out.shape
    drawn = np.zeros(units * TOGETHER)
    for b in range(resamples):
        for u in range(units):
            drawn[u * TOGETHER + b] = times[b, u]
    sums = np.zeros(cells * fields * TOGETHER)
    for i in range(len(unit)):
        of = unit[i] * TOGETHER
        to = cell[i] * fields * TOGETHER
        for f in range(fields):
            _add_together(sums, to + f * TOGETHER, drawn, of, values[i, f])
    for b in range(resamples):
        for c in range(cells):
            for f in range(fields):
                out[b, c, f] = sums[(c * fields + f) * TOGETHER + b]
