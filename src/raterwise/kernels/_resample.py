"""Sums of resampled units: what a product of multiplicities × tables would give, from entries.

A table per unit is mostly zeros: a patient is in few of the bins, a case in one. So the product
runs over the entries that there are, cell by cell, and takes sixteen resamples at once: the sums
of a cell stay in the processor's registers until its entries are through. Every resample adds in
the order of the entries, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import core, extending, njit, types

Array = Any
intrinsic: Any = extending.intrinsic
cgutils: Any = core.cgutils

TOGETHER = 16
"""How many resamples are added up at once: with eight fields, half of the wide registers."""


@intrinsic(prefer_literal=True)
def _add_entries(
    typing: Any, sums: Any, times: Any, unit: Any, values: Any, start: Any, stop: Any, fields: Any
) -> Any:
    """Write Σ values[i, f] × times[16 unit[i] … +15], over entries start … stop-1, to sums[f].

    Written out, because the compiler must allow for arrays that overlap and would put every sum
    back to memory after every addition.
    """
    signature = types.void(sums, times, unit, values, types.int64, types.int64, types.int64)
    number = fields.literal_value
    vector = ir.VectorType(ir.DoubleType(), TOGETHER)
    whole = ir.IntType(64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def data(i: int) -> Any:
            return context.make_array(signature.args[i])(context, builder, value=args[i]).data

        def at(pointer: Any, index: Any, scale: int = 1, shift: int = 0) -> Any:
            place = builder.mul(index, ir.Constant(whole, scale))
            return builder.gep(pointer, [builder.add(place, ir.Constant(whole, shift))])

        def all_of(scalar: Any) -> Any:
            nothing = ir.Constant(vector, ir.Undefined)
            one = builder.insert_element(nothing, scalar, ir.Constant(ir.IntType(32), 0))
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), TOGETHER), [0] * TOGETHER)
            return builder.shuffle_vector(one, nothing, lanes)

        out, drawn, units, entries = (data(i) for i in range(4))
        held = [cgutils.alloca_once(builder, vector) for _ in range(number)]
        for h in held:
            builder.store(ir.Constant(vector, [0.0] * TOGETHER), h)
        with cgutils.for_range_slice(builder, args[4], args[5], ir.Constant(whole, 1)) as (i, _):
            place = at(drawn, builder.load(at(units, i)), TOGETHER)
            times = builder.load(builder.bitcast(place, vector.as_pointer()), align=8)
            for f, h in enumerate(held):
                value = all_of(builder.load(at(entries, i, number, f)))
                # In one instruction where the processor has it: one rounding, not two.
                product = builder.fmul(times, value, flags=("contract",))
                builder.store(builder.fadd(builder.load(h), product, flags=("contract",)), h)
        for f, h in enumerate(held):
            place = at(out, ir.Constant(whole, f), TOGETHER)
            builder.store(builder.load(h), builder.bitcast(place, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return signature, generate


@njit(nogil=True, cache=True)
def occupied_cells(table: Array) -> tuple[Array, Array, Array]:
    """Return the entries of `table` (units, cells, fields), cell by cell: unit, cell, fields."""
    units, cells, fields = table.shape
    occupied = np.zeros((units, cells), np.bool_)
    place = np.zeros(cells + 1, np.int64)
    for u in range(units):
        for c in range(cells):
            for f in range(fields):
                if table[u, c, f] != 0.0:
                    occupied[u, c] = True
            place[c + 1] += occupied[u, c]
    for c in range(cells):
        place[c + 1] += place[c]
    number = place[cells]
    unit, cell = np.empty(number, np.int64), np.empty(number, np.int64)
    values = np.empty((number, fields))
    for u in range(units):
        for c in range(cells):
            if occupied[u, c]:
                i = place[c]
                unit[i], cell[i] = u, c
                for f in range(fields):
                    values[i, f] = table[u, c, f]
                place[c] += 1
    return unit, cell, values


@njit(nogil=True, cache=True)
def add_drawn_labels(
    place: Array, same: Array, reach: float, probs: Array, cell: Array, weight: Array, out: Array
) -> None:
    """Add what labels deviate by from `probs` (cases, classes) to cells, `out` (draws, cells).

    The labels of a case and draw, `place` (labels, draws, cases) in [0, 1], are each of the first
    class up to which the probabilities reach beyond it; where they are the `same` (draws, cases)
    the first stands for all. Their share of a class minus its probability, times `reach` where they
    are not the same, adds `weight` (cases, classes) to its `cell`.
    """
    labels, draws, cases = place.shape
    classes = probs.shape[1]
    for b in range(draws):
        for i in range(cases):
            number = 1 if same[b, i] else labels
            far = 1.0 if same[b, i] else reach
            for k in range(classes):
                out[b, cell[i, k]] -= far * weight[i, k] * probs[i, k]
            for j in range(number):
                upto = 0.0
                for k in range(classes):
                    upto += probs[i, k]
                    if place[j, b, i] < upto:
                        out[b, cell[i, k]] += far * weight[i, k] / number
                        break


@lru_cache(maxsize=8)
def resampling_kernel(fields: int) -> Callable[[Array, Array, Array, Array, Array], None]:
    """Return the loop for that many fields, which is a constant in it.

    resample(times, unit, cell, values, out) adds up the entries, sorted by cell, as often as each
    of at most TOGETHER resamples draws their unit. `times` is (resamples, units), `out`
    (resamples, cells, fields).
    """

    @njit(nogil=True, cache=True)
    def resample(times: Array, unit: Array, cell: Array, values: Array, out: Array) -> None:
        resamples, units = times.shape
        drawn = np.zeros(units * TOGETHER)
        for b in range(resamples):
            for u in range(units):
                drawn[u * TOGETHER + b] = times[b, u]
        sums = np.empty(fields * TOGETHER)
        stop = 0
        for c in range(out.shape[1]):
            start = stop
            while stop < len(cell) and cell[stop] == c:
                stop += 1
            _add_entries(sums, drawn, unit, values, start, stop, fields)
            for b in range(resamples):
                for f in range(fields):
                    out[b, c, f] = sums[f * TOGETHER + b]

    return resample
