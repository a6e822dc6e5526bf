"""The caller's data as a NumPy array: without an unnecessary copy, and without guessing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from raterwise import rules
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.frames import NUMBERS, numbers_of, refuse_ragged
from raterwise.types import Array


def as_array(values: Any, name: str) -> Array:
    """Return `values` as a NumPy array; tensors on any device, frames and series are accepted."""
    if hasattr(values, "detach"):
        values = _from_torch(values, name)
    elif (numbers := numbers_of(values, name)) is not None:
        values = numbers
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        if isinstance(values, list | tuple):
            refuse_ragged(values, name)
        raise InvalidTypeError(f"{name}: must be an array of numbers; {error}") from error
    if array.dtype.kind not in "biuf":
        if array.dtype.kind == "O" and array.ndim == 0:
            raise _not_an_array(values, name)
        first = array.flat[0] if array.size else None
        if array.dtype.kind != "O":
            raise rules.not_numbers(name, array.dtype, first)
        known = [value for value in array.flat if not rules.is_missing(value)]
        objects = all(isinstance(value, NUMBERS) for value in known)
        missing = array.size - len(known)
        raise rules.not_numbers(name, array.dtype, first, objects=objects, missing=missing)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _not_an_array(value: Any, name: str) -> InvalidTypeError:
    """One thing that is no array, such as a belief, which has one."""
    way = ""
    if hasattr(value, "disagreement"):
        way = ", which says it with .disagreement()" if name == "predicted" else (
            ", whose probabilities are its .mean"
        )  # fmt: skip
    return InvalidTypeError(f"{name}: must be an array of numbers; got {value!r}{way}")


def refuse_masked(values: Any, name: str) -> None:
    """Raise where some values of a masked array are hidden."""
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        if hidden.any():
            raise rules.masked_values(name, int(hidden.sum()), hidden.size)


def on_gpu(values: Any) -> bool:
    """Say whether `values` is a tensor on a GPU."""
    return hasattr(values, "detach") and values.device.type == "cuda"


def _from_torch(tensor: Any, name: str) -> Array:
    tensor = tensor.detach()
    if str(tensor.dtype) == "torch.bfloat16":  # NumPy has no such type; float32 holds it exactly
        tensor = tensor.float()
    try:
        array: Array = tensor.cpu().numpy()
    except (TypeError, RuntimeError) as error:  # sparse, quantized, or without values at all
        raise InvalidTypeError(f"{name}: must be a dense tensor of numbers; {error}") from error
    return array


def as_float_array(values: Any, name: str, *, ndim: int | tuple[int, ...]) -> Array:
    """Return `values` as float16, float32 or float64, unchanged where it is one of these."""
    array = as_array(values, name)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    rules.check_dimensions(name, array.shape, (ndim,) if isinstance(ndim, int) else ndim)
    return array


def settled(probs: Array) -> Array:
    """Return probabilities in which what leaves [0, 1] by rounding is 0 or 1; all else as it is.

    >>> settled(np.array([1 + 2e-7, -1e-9, 1.5, 0.25]))
    array([1.  , 0.  , 1.5 , 0.25])
    """
    near = np.abs(probs - 0.5) <= 0.5 + rules.OVERSHOOT
    return np.where(near, np.clip(probs, 0, 1), probs)


def as_integer_array(values: Any, name: str, *, ndim: int | tuple[int, ...]) -> Array:
    """Return `values` as an integer array; whole floats are taken, fractions are an error."""
    array = as_array(values, name)
    rules.check_dimensions(name, array.shape, (ndim,) if isinstance(ndim, int) else ndim)
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            raise rules.not_whole(name, math.inf, int(np.isnan(array).sum()))
        largest = float(np.abs(array).max(initial=0))  # 2**63 is infinite in float16
        if largest >= 2.0**63:
            raise InvalidInputError(f"{name}: must be below 2**63; got {largest:g}")
        whole = array.astype(np.int64)
        if (fractions := whole != array).any():
            raise rules.not_whole(name, float(array[fractions].flat[0]), 0)
        return whole
    if array.dtype == np.uint64:  # mixed with signed integers, NumPy would turn it into floats
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise InvalidInputError(f"{name}: must be below 2**63; got {array.max()}")
        return array.astype(np.int64)
    return array
