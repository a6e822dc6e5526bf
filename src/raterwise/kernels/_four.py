"""Four neighbouring sums in one step: adding to a table is what most loops wait for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types

intrinsic: Any = extending.intrinsic


@intrinsic
def add_four(typing: Any, sums: Any, at: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Add a, b, c, d to sums[at] … sums[at + 3] of a flat array; `at` has no sign."""
    signature = types.void(sums, types.uint64, *(types.float64,) * 4)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
        four = ir.VectorType(ir.DoubleType(), 4)
        place = builder.bitcast(builder.gep(data, [args[1]]), four.as_pointer())
        values = ir.Constant(four, ir.Undefined)
        for lane, value in enumerate(args[2:]):
            values = builder.insert_element(values, value, ir.Constant(ir.IntType(32), lane))
        builder.store(builder.fadd(builder.load(place, align=8), values), place, align=8)
        return context.get_dummy_value()

    return signature, generate
