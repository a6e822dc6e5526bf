"""Loops over tiles of sixteen probabilities or rows, as fast as memory delivers them.

The two tables that are asked of the largest data, the confidences of single labels and every
class's probability, in equal bins. To keep up with the memory a row may take about six cycles,
so every step is done on sixteen at once. The compiler does not find that form by itself;
`read_rows` and `read_values` write it in LLVM's vector instructions, which any processor has in
one width or another. Five ideas carry it:

* **A key instead of an arg-max.** A probability in [2⁻¹⁵, 1] begins with the same five bits, so
  these are shifted out and the class goes in at the other end. The largest key is the largest
  probability, and among equal ones the first class: one unsigned maximum finds both, exactly.
* **Rows are folded, not transposed.** A row is cut into pieces of 16, 8, 4, 2 and 1 classes;
  pieces of several rows fill a vector, and adding even to odd lanes halves the pieces until a
  lane is a row.
* **A product instead of a search.** A float32, plus the unit by which a score may be below an edge
  and count as on it, times the number of bins is exact in float64, and its whole part is the bin.
* **Doubt is somebody else's job.** Anything odd (NaN, a negative, -0.0, a sum that is off by
  nearly the tolerance) raises a flag, and the caller reads those rows again, slowly and exactly.
* **Copies of every sum.** Saturated confidences all fall in one bin, and each addition would wait
  for the last one to reach memory; neighbouring rows add to different copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, njit, types

Array = Any
Value = Any
intrinsic: Any = extending.intrinsic

MOST_CLASSES = 32
"""The class has five bits of the key."""
MOST_BINS = 256
"""With more, the copies outgrow the first cache."""

ROWS = 16
BLOCK = 64
"""Rows between reading and adding: long enough to pipeline, short enough to stay in the cache."""
COPIES = 4
CACHE_LINE, AHEAD = 64, 4096
"""Bytes. The processor does not look ahead beyond a page of memory; asking a page early does."""
DOUBT = 0.9
"""Which part of the tolerance a sum in the array's own precision may use without a second look."""

UNIT = 2.0**-24
"""One unit in the last place of a float32: so near below an edge a score counts as on it."""

INDEX_BITS = 5
INT32, INT64, DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()


class _Lanes:
    """Emits operations on sixteen lanes of floats or of the integers that are their bits."""

    def __init__(self, context: Any, builder: Any, width: int) -> None:
        self.context, self.builder, self.width = context, builder, width
        self.float: Any = ir.FloatType() if width == 32 else DOUBLE
        self.bits = ir.IntType(width)
        # Bits 0 0111: the sign and the leading exponent bits of every float in [2⁻¹⁵, 2).
        self.prefix = 0b00111 << (width - INDEX_BITS)

    def constant(self, values: Sequence[float], kind: Any = None) -> Value:
        return ir.Constant(ir.VectorType(kind or self.bits, len(values)), list(values))

    def all(self, value: float, kind: Any = None) -> Value:
        return self.constant([value] * ROWS, kind)

    def splat(self, scalar: Value) -> Value:
        nothing = ir.Constant(ir.VectorType(scalar.type, ROWS), ir.Undefined)
        one = self.builder.insert_element(nothing, scalar, ir.Constant(INT32, 0))
        return self.shuffle(one, nothing, [0] * ROWS)

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        return self.builder.shuffle_vector(a, b, self.constant(lanes, INT32))

    def pointer(self, kind: Any, array: Value, index: Value, lanes: int, element: Any) -> Value:
        data = self.context.make_array(kind)(self.context, self.builder, value=array).data
        at = self.builder.gep(data, [index])
        return self.builder.bitcast(at, ir.VectorType(element, lanes).as_pointer())

    def call(self, name: str, *values: Value) -> Value:
        kind = values[0].type
        element = f"f{self.width}" if kind.element == self.float else f"i{self.width}"
        function = self.builder.module.declare_intrinsic(
            f"llvm.{name}.v{ROWS}{element}", (), ir.FunctionType(kind, [kind] * len(values))
        )
        return self.builder.call(function, values)

    def as_double(self, values: Value) -> Value:
        if self.width == 64:
            return values
        return self.builder.fpext(values, ir.VectorType(DOUBLE, ROWS))

    def prefetch(self, pointer: Value) -> None:
        """Ask for the cache line at `pointer`, which need not be inside the array."""
        kind = ir.IntType(8).as_pointer()
        function = self.builder.module.declare_intrinsic(
            "llvm.prefetch", (kind,), ir.FunctionType(ir.VoidType(), (kind, INT32, INT32, INT32))
        )
        to_read, keep, data = (ir.Constant(INT32, flag) for flag in (0, 3, 1))
        self.builder.call(function, (self.builder.bitcast(pointer, kind), to_read, keep, data))

    def joined(self, pieces: list[Value]) -> Value:
        """Put the pieces of several rows side by side."""
        while len(pieces) > 1:
            size = pieces[0].type.count
            whole = range(2 * size)
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [self.shuffle(a, b, whole) for a, b in pairs]
        return pieces[0]

    def folded(self, vectors: list[Value], combine: Callable[[Value, Value], Value]) -> Value:
        """Combine even with odd lanes until one vector is left, its lanes the rows in order."""
        even, odd = range(0, 2 * ROWS, 2), range(1, 2 * ROWS, 2)
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [combine(self.shuffle(a, b, even), self.shuffle(a, b, odd)) for a, b in pairs]
        return vectors[0]

    def key(self, bits: Value, first_class: int, piece: int) -> Value:
        """Return probability and class in one number; smaller probabilities never win."""
        raised = self.call("umax", bits, self.all(self.prefix))
        # A funnel shift: five bits leave at the front, the class enters behind.
        last, room = MOST_CLASSES - 1, self.width - INDEX_BITS
        classes = [(last - first_class - lane % piece) << room for lane in range(ROWS)]
        return self.call("fshl", raised, self.constant(classes), self.all(INDEX_BITS))


def _fold_rows(lanes: _Lanes, load: Callable[[int, int], Value], classes: int) -> list[Value]:
    """Return the key, the sum and the joined sign bits of sixteen rows."""
    builder = lanes.builder
    as_bits = ir.VectorType(lanes.bits, ROWS)
    key = total = signs = None
    first = 0
    while first < classes:
        piece = min(ROWS, 1 << ((classes - first).bit_length() - 1))
        side_by_side = ROWS // piece
        vectors = [
            lanes.joined([load((row + j) * classes + first, piece) for j in range(side_by_side)])
            for row in range(0, ROWS, side_by_side)
        ]
        bits = [builder.bitcast(vector, as_bits) for vector in vectors]
        for b in bits:
            signs = b if signs is None else builder.or_(signs, b)
        keys = [lanes.key(b, first, piece) for b in bits]
        best = lanes.folded(keys, lambda a, b: lanes.call("umax", a, b))
        part = lanes.folded(vectors, builder.fadd)
        key = best if key is None else lanes.call("umax", key, best)
        total = part if total is None else builder.fadd(total, part)
        first += piece
    return [key, total, signs]


def _bin_of(lanes: _Lanes, z: Value, bins: Value) -> Value:
    """Return the bin of each score, of `bins` equal ones with usual edges.

    A float32 times M is exact in float64, and so is z M + u M with its unit in the last place u:
    the whole part is the bin. A float64 times M may round across an edge, and the edges
    themselves, i times 1 / M, decide.
    """
    builder = lanes.builder
    scalar = builder.sitofp(bins, DOUBLE)
    whole = ir.VectorType(INT32, ROWS)
    product = builder.fmul(z, lanes.splat(scalar))
    if lanes.width == 32:
        unit = builder.fmul(scalar, ir.Constant(DOUBLE, UNIT))
        product = builder.fadd(product, lanes.splat(unit), flags=("contract",))
    index = builder.fptosi(product, whole)
    if lanes.width == 64:
        doubles = ir.VectorType(DOUBLE, ROWS)
        step = lanes.splat(builder.fdiv(ir.Constant(DOUBLE, 1.0), scalar))
        next_index = builder.add(index, lanes.all(1, INT32))
        lower = builder.fmul(builder.sitofp(index, doubles), step)
        upper = builder.fmul(builder.sitofp(next_index, doubles), step)
        index = builder.add(index, builder.zext(builder.fcmp_ordered(">=", z, upper), whole))
        index = builder.sub(index, builder.zext(builder.fcmp_ordered("<", z, lower), whole))
    last = lanes.splat(builder.trunc(builder.sub(bins, ir.Constant(INT64, 1)), INT32))
    return builder.select(builder.icmp_signed("<", index, last), index, last)


def _is_hit(lanes: _Lanes, key: Value, labels: Value) -> Value:
    """Return which rows' predicted class is the label."""
    builder = lanes.builder
    last = lanes.all(MOST_CLASSES - 1)
    predicted = builder.xor(builder.and_(key, last), last)
    if labels.type.element.width > lanes.width:
        labels = builder.trunc(labels, predicted.type)
    elif labels.type.element.width < lanes.width:
        labels = builder.zext(labels, predicted.type)
    return builder.icmp_unsigned("==", predicted, labels)


class _Tile:
    """Sixteen rows: their keys, what they hold, and what about them is doubtful."""

    def __init__(self, lanes: _Lanes, probs: Any, array: Value, first: Value, classes: int) -> None:
        builder, width = lanes.builder, lanes.width
        origin = builder.mul(first, ir.Constant(INT64, classes))

        def at(offset: int, size: int = ROWS) -> Value:
            index = builder.add(origin, ir.Constant(INT64, offset))
            return lanes.pointer(probs, array, index, size, lanes.float)

        for byte in range(0, ROWS * classes * width // 8, CACHE_LINE):
            lanes.prefetch(at((AHEAD + byte) * 8 // width))
        key, total, signs = _fold_rows(
            lanes, lambda offset, size: builder.load(at(offset, size), align=width // 8), classes
        )
        kept = builder.lshr(key, lanes.all(INDEX_BITS))
        self.lanes, self.key, self._total, self._signs = lanes, key, total, signs
        self.largest = builder.bitcast(builder.or_(kept, lanes.all(lanes.prefix)), total.type)

    def is_doubtful(self, tolerance: Value) -> Value:
        """Say whether a row has a negative value or one above 1, or does not sum to 1."""
        lanes, builder = self.lanes, self.lanes.builder
        one = lanes.all(1.0, lanes.float)
        allowed = tolerance if lanes.width == 64 else builder.fptrunc(tolerance, lanes.float)
        off = lanes.call("fabs", builder.fsub(self._total, one))
        wrong = builder.icmp_signed("<", self._signs, lanes.all(0))
        # Unordered: a sum that is NaN is off, too.
        for beyond in (
            builder.fcmp_unordered(">", off, lanes.splat(allowed)),
            builder.fcmp_unordered(">", self.largest, one),
        ):
            wrong = builder.or_(wrong, beyond)
        whole = builder.bitcast(wrong, ir.IntType(ROWS))
        return builder.icmp_unsigned("!=", whole, ir.Constant(ir.IntType(ROWS), 0))


@intrinsic(prefer_literal=True)
def read_rows(
    typing: Any, probs: Any, classes: Any, labels: Any, first: Any, bins: Any, tolerance: Any,
    score: Any, squared_gap: Any, cell: Any, place: Any,
) -> Any:  # fmt: skip
    """Read rows first … first+15, write their z, (μ-z)² and cell at `place`; return any doubt.

    A cell is one of the copies of the sums of a bin's hits or misses: (bin, hit, lane % COPIES).
    """
    signature = types.boolean(
        probs, types.int64, labels, types.int64, types.int64, types.float64,
        score, squared_gap, cell, types.int64,
    )  # fmt: skip

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, probs.dtype.bitwidth)

        def at(i: int, index: Value, element: Any) -> Value:
            return lanes.pointer(signature.args[i], args[i], index, ROWS, element)

        tile = _Tile(lanes, probs, args[0], args[3], classes.literal_value)
        z = lanes.as_double(tile.largest)
        label_bits = labels.dtype.bitwidth
        said = builder.load(at(2, args[3], ir.IntType(label_bits)), align=label_bits // 8)
        hit = _is_hit(lanes, tile.key, said)
        slot = builder.shl(_bin_of(lanes, z, args[4]), lanes.all(1, INT32))
        slot = builder.or_(slot, builder.zext(hit, slot.type))
        copy = lanes.constant([lane % COPIES for lane in range(ROWS)], INT32)
        slot = builder.add(builder.mul(slot, lanes.all(COPIES, INT32)), copy)
        gap = builder.select(hit, builder.fsub(lanes.all(1.0, DOUBLE), z), z)
        builder.store(z, at(6, args[9], DOUBLE), align=8)
        builder.store(builder.fmul(gap, gap), at(7, args[9], DOUBLE), align=8)
        builder.store(slot, at(8, args[9], INT32), align=4)
        return tile.is_doubtful(args[5])

    return signature, generate


@intrinsic(prefer_literal=True)
def check_rows(typing: Any, probs: Any, classes: Any, first: Any, tolerance: Any) -> Any:
    """Return whether there is a doubt about rows first … first+15."""
    signature = types.boolean(probs, types.int64, types.int64, types.float64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, probs.dtype.bitwidth)
        tile = _Tile(lanes, probs, args[0], args[2], classes.literal_value)
        return tile.is_doubtful(args[3])

    return signature, generate


@intrinsic
def read_values(
    typing: Any, probs: Any, first: Any, bins: Any, offset: Any,
    score: Any, squared_gap: Any, cell: Any, place: Any,
) -> Any:  # fmt: skip
    """Read values first … first+15 and write their z, z² and bin + offset at `place`."""
    signature = types.void(
        probs, types.int64, types.int64, offset, score, squared_gap, cell, types.int64
    )

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, probs.dtype.bitwidth)

        def at(i: int, index: Value, element: Any) -> Value:
            return lanes.pointer(signature.args[i], args[i], index, ROWS, element)

        z = lanes.as_double(builder.load(at(0, args[1], lanes.float), align=lanes.width // 8))
        start = builder.load(at(3, args[7], INT32), align=4)
        builder.store(z, at(4, args[7], DOUBLE), align=8)
        builder.store(builder.fmul(z, z), at(5, args[7], DOUBLE), align=8)
        slot = builder.add(start, _bin_of(lanes, z, args[2]))
        builder.store(slot, at(6, args[7], INT32), align=4)
        return context.get_dummy_value()

    return signature, generate


def has_usual_edges(probs: Array, edges: Array) -> bool:
    """Say whether the loops here put these probabilities where these edges do."""
    return bool(
        probs.dtype in (np.float32, np.float64)
        and len(edges) <= MOST_BINS + 1
        and are_usual(tuple(edges.tolist()), 8 * probs.dtype.itemsize)
    )


@lru_cache(maxsize=64)
def are_usual(edges: tuple[float, ...], width: int) -> bool:
    """Say whether `_bin_of` puts every float of that width where these edges do.

    For float64 the edges must be i times 1 / M. For float32, for which edges are lower by `UNIT`,
    the first score of bin i must be the first one with (z + UNIT) M >= i, which float64 holds
    exactly.
    """
    bins, lower = len(edges) - 1, np.array(edges[:-1])
    index = np.arange(bins)
    if width == 64:
        return bool(np.array_equal(lower, index * (1 / bins)))
    first = lower.astype(np.float32)
    first = np.where(first < lower, np.nextafter(first, np.float32(2)), first)
    before = np.nextafter(first, np.float32(-1)).astype(np.float64)
    reached = (first.astype(np.float64) + UNIT) * bins >= index
    return bool((reached & ((before + UNIT) * bins < index))[1:].all())


Loop = Callable[[Array, Array, int, float, Array], bool]
"""add(probs, labels, bins, tolerance, table) adds rows of probabilities (n·K,), flat, with their
labels (n,) to `table` (channels, bins, FIELDS), n a multiple of ROWS. It returns whether they were
added; they are not where there is a doubt about one of them."""


@lru_cache(maxsize=MOST_CLASSES)
def top_label_loop(classes: int) -> Loop:
    """Return the loop over confidences for that many classes, which is a constant in it."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def add(probs: Array, labels: Array, bins: int, tolerance: float, table: Array) -> bool:
        score, squared_gap, cell = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK, np.uint32)
        counts = np.zeros(bins * 2 * COPIES, np.int64)
        sums = np.zeros(bins * 2 * COPIES * 2)
        for start in range(0, len(labels), BLOCK):
            size = min(BLOCK, len(labels) - start)
            doubt = False
            for r in range(0, size, ROWS):
                doubt |= read_rows(
                    probs, classes, labels, start + r, bins, DOUBT * tolerance,
                    score, squared_gap, cell, r,
                )  # fmt: skip
            if doubt:
                return False
            for r in range(size):
                at = np.uint64(cell[r])
                counts[at] += 1
                sums[np.uint64(2) * at] += score[r]
                sums[np.uint64(2) * at + np.uint64(1)] += squared_gap[r]
        for b in range(bins):
            for i in range(b * 2 * COPIES, (b + 1) * 2 * COPIES):
                hits = counts[i] * (i // COPIES % 2)
                _add_fields(table, 0, b, counts[i], hits, sums[2 * i], sums[2 * i + 1])
        return True

    return add


@lru_cache(maxsize=MOST_CLASSES)
def per_class_loop(classes: int) -> Loop:
    """Return the loop over every class's probability: is it class k?, for every k."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def add(probs: Array, labels: Array, bins: int, tolerance: float, table: Array) -> bool:
        size = ROWS * classes  # a whole number of vectors, whatever the number of classes
        score, squared_gap, cell = np.empty(size), np.empty(size), np.empty(size, np.uint32)
        offset = np.empty(size, np.int32)
        for i in range(size):
            offset[i] = i % classes * bins
        counts, hits = np.zeros(classes * bins, np.int64), np.zeros(classes * bins, np.int64)
        sums = np.zeros(2 * classes * bins)
        for start in range(0, len(labels), ROWS):
            if check_rows(probs, classes, start, DOUBT * tolerance):
                return False
            for i in range(0, size, ROWS):
                first = start * classes + i
                read_values(probs, first, bins, offset, score, squared_gap, cell, i)
            for r in range(ROWS):
                own = np.uint64(r * classes + labels[start + r])
                hits[cell[own]] += 1
                squared_gap[own] = (1.0 - score[own]) * (1.0 - score[own])
            for v in range(size):
                at = np.uint64(cell[v])
                counts[at] += 1
                sums[np.uint64(2) * at] += score[v]
                sums[np.uint64(2) * at + np.uint64(1)] += squared_gap[v]
        for c in range(classes):
            for b in range(bins):
                i = c * bins + b
                _add_fields(table, c, b, counts[i], hits[i], sums[2 * i], sums[2 * i + 1])
        return True

    return add


@njit(nogil=True, cache=True)
def _add_fields(
    table: Array, c: int, b: int, cases: int, hits: int, score: float, squared_gap: float
) -> None:
    """Write out the fields of single labels of weight 1."""
    table[c, b, 0] += cases
    table[c, b, 1] += cases
    table[c, b, 2] += cases
    table[c, b, 3] += score
    table[c, b, 4] += hits
    table[c, b, 5] += squared_gap
    table[c, b, 6] += hits
