"""Whatever the caller has, as a NumPy array: no copy where none is needed, no guess ever."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, InvalidTypeError

__all__ = [
    "as_array",
    "as_float_array",
    "as_integer_array",
    "choose",
    "on_gpu",
    "positive_integer",
]

Array = NDArray[Any]


def as_array(values: Any, name: str) -> Array:
    """Return `values` as a NumPy array; torch tensors on any device are accepted."""
    if hasattr(values, "detach"):
        values = _from_torch(values)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InvalidTypeError(f"{name}: must be an array of numbers; {error}") from error
    if array.dtype.kind not in "biuf":
        raise InvalidTypeError(
            f"{name}: must be an array of numbers; got dtype {array.dtype}"
            + (f" (first value {array.flat[0]!r})" if array.size else "")
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def on_gpu(values: Any) -> bool:
    """Say whether `values` is a tensor on a GPU."""
    return hasattr(values, "detach") and values.device.type == "cuda"


def _from_torch(tensor: Any) -> Array:
    tensor = tensor.detach()
    if str(tensor.dtype) == "torch.bfloat16":  # NumPy has no such type; float32 holds it exactly
        tensor = tensor.float()
    array: Array = tensor.cpu().numpy()
    return array


def as_float_array(values: Any, name: str, *, ndim: int | tuple[int, ...]) -> Array:
    """Return `values` as float16, float32 or float64, unchanged where it is one of these."""
    array = as_array(values, name)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    _check_ndim(array, name, ndim)
    return array


def as_integer_array(values: Any, name: str, *, ndim: int | tuple[int, ...]) -> Array:
    """Return `values` as an integer array; whole floats are taken, fractions are an error."""
    array = as_array(values, name)
    _check_ndim(array, name, ndim)
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "f":
        if missing := int(np.isnan(array).sum()):
            raise InvalidInputError(f"{name}: must be whole numbers; {missing} are NaN")
        if not np.isfinite(array).all():
            raise InvalidInputError(f"{name}: must be whole numbers; some are infinite")
        whole = array.astype(np.int64)
        if (fractions := whole != array).any():
            value = array[fractions].flat[0]
            raise InvalidInputError(f"{name}: must be whole numbers; got {value}")
        return whole
    if array.dtype == np.uint64:  # mixed with signed integers, NumPy would turn it into floats
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise InvalidInputError(f"{name}: must be below 2**63; got {array.max()}")
        return array.astype(np.int64)
    return array


def _check_ndim(array: Array, name: str, ndim: int | tuple[int, ...]) -> None:
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in allowed:
        words = " or ".join(f"{n}-dimensional" for n in allowed)
        raise InvalidInputError(f"{name}: must be {words}; got shape {array.shape}")


def choose(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return `value` when it is one of `allowed`; otherwise say what is."""
    if value not in allowed:
        raise InvalidInputError(f"{name}: must be one of {', '.join(allowed)}; got {value!r}")
    return value


def positive_integer(name: str, value: Any, *, least: int = 1) -> int:
    """Return `value` as an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidTypeError(f"{name}: must be a whole number; got {value!r}")
    if value < least:
        raise InvalidInputError(f"{name}: must be at least {least}; got {value}")
    return int(value)
