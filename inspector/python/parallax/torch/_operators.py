# SPDX-License-Identifier: Apache-2.0
"""Translations of ATen operators that torch.onnx lacks or has wrong.

They are plain functions of onnxscript's traced operators, in the form that `custom_translation_table` of
torch.onnx.export takes; opset 18 is what they are written in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["WRONG_TRANSLATIONS", "complex_translations", "custom_translations"]

aten = torch.ops.aten

WRONG_TRANSLATIONS = (
    # Batch normalization in training is written as inference: the running statistics are used, without a word.
    "aten::_native_batch_norm_legit_functional", "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit.no_stats", "aten::native_batch_norm",
    # The second output, the total weight, is that of no ignored targets.
    "aten::nll_loss_forward",
    # The outputs after the first are of the wrong shape or missing.
    "aten::_embedding_bag", "aten::_embedding_bag_forward_only", "aten::_linalg_det",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
)
"""Operators whose translation by torch.onnx computes something else; they are decomposed or refused."""


def custom_translations() -> dict[Any, Callable[..., Any]]:
    """Our translations for real numbers, by operator."""
    return {
        torch.ops.prims.prod.default: prims_prod,
        aten.max.dim: lambda x, dim, keepdim=False: extreme("Max", x, dim, keepdim),
        aten.min.dim: lambda x, dim, keepdim=False: extreme("Min", x, dim, keepdim),
        aten.sort.stable: stable_sort,
        aten._native_batch_norm_legit_no_training.default: batch_norm_inference,
        aten.sym_numel.default: lambda x: _op().Size(x),
    }


def complex_translations() -> dict[Any, Callable[..., Any]]:
    """Our translations for complex numbers, which ONNX sees as real pairs in a last dimension of size 2."""
    return {
        aten.detach.default: identity, aten.alias.default: identity, aten.lift_fresh_copy.default: identity,
        aten.new_zeros.default: complex_new_zeros, aten.copy.default: complex_copy,
        aten.slice_scatter.default: complex_slice_scatter, aten.mul.Scalar: complex_mul_scalar,
        aten.unsqueeze.default: complex_unsqueeze, aten.select.int: complex_select, aten.expand.default: complex_expand,
    }


def _op() -> Any:
    from onnxscript import opset18

    return opset18


def identity(x: Any) -> Any:
    """The value itself."""
    return _op().Identity(x)


def prims_prod(x: Any, dims: Sequence[int] | None = None, output_dtype: int = -1) -> Any:
    """The product of the elements along dimensions; of all of them where none are given."""
    op = _op()
    if output_dtype != -1:
        x = op.Cast(x, to=output_dtype)
    if not dims:
        return x if dims is not None else op.ReduceProd(x, keepdims=0)
    return op.ReduceProd(x, op.Constant(value_ints=list(dims)), keepdims=0)


def extreme(which: str, x: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """The largest ("Max") or smallest ("Min") element along an axis and its position; of bool, too."""
    op = _op()
    if len(x.shape) == 0:
        return op.Identity(x), op.Constant(value_int=0)
    is_bool = str(x.dtype) == "BOOL"
    if is_bool:
        x = op.Cast(x, to=6)  # int32
    reduce, where = getattr(op, f"Reduce{which}"), getattr(op, f"Arg{which}")
    result = reduce(x, op.Constant(value_ints=[dim]), keepdims=int(keepdim))
    return op.Cast(result, to=9) if is_bool else result, where(x, axis=dim, keepdims=int(keepdim))


def stable_sort(x: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    """All elements along an axis in order; TopK puts equal ones in the order of their positions."""
    op = _op()
    if len(x.shape) == 0:
        return op.Identity(x), op.Constant(value_int=0)
    axis = dim % len(x.shape)
    count = op.Shape(x, start=axis, end=axis + 1)
    values, positions = op.TopK(x, count, axis=axis, largest=int(descending), sorted=1)
    return values, positions


def batch_norm_inference(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float,
) -> tuple[Any, Any, Any]:
    """Normalization by the running statistics; the saved ones are empty, as torch says."""
    op = _op()
    if weight is None:
        weight = op.Expand(op.CastLike(op.Constant(value_float=1.0), mean), op.Shape(mean))
    if bias is None:
        bias = op.Expand(op.CastLike(op.Constant(value_float=0.0), mean), op.Shape(mean))
    result = op.BatchNormalization(x, weight, bias, mean, variance, epsilon=eps, momentum=1.0 - momentum)
    empty = [op.CastLike(op.Constant(value_floats=[]), mean) for _ in range(2)]
    return result, empty[0], empty[1]


def complex_mul_scalar(x: Any, other: float | complex) -> Any:
    """Both parts times a real number, or the product with a complex one."""
    op = _op()
    scale = op.CastLike(op.Constant(value_float=float(complex(other).real)), x)
    result = op.Mul(x, scale)
    if complex(other).imag == 0.0:
        return result
    pair = op.Constant(value_ints=[-1])
    real = op.Slice(x, op.Constant(value_ints=[0]), op.Constant(value_ints=[1]), pair)
    imaginary = op.Slice(x, op.Constant(value_ints=[1]), op.Constant(value_ints=[2]), pair)
    rotated = op.Concat(op.Neg(imaginary), real, axis=-1)
    return op.Add(result, op.Mul(rotated, op.CastLike(op.Constant(value_float=float(complex(other).imag)), x)))


def complex_unsqueeze(x: Any, dim: int) -> Any:
    """A dimension of size 1; a negative one counts from before the pair."""
    op = _op()
    return op.Unsqueeze(x, op.Constant(value_ints=[dim if dim >= 0 else dim + len(x.shape)]))


def complex_select(x: Any, dim: int, index: Any) -> Any:
    """One position of a dimension, which vanishes."""
    op = _op()
    position = op.Constant(value_int=index) if isinstance(index, int) else index
    return op.Gather(x, position, axis=dim if dim >= 0 else dim + len(x.shape) - 1)


def complex_expand(x: Any, size: Sequence[Any], implicit: bool = False) -> Any:
    """Dimensions of size 1 repeated; -1 leaves one as it is."""
    return _op().Expand(x, _pair_shape([1 if isinstance(s, int) and s == -1 else s for s in size]))


def _pair_shape(size: Sequence[Any]) -> Any:
    """Sizes, each a number or a value, and the 2 of the pair."""
    op = _op()
    if all(isinstance(s, int) for s in size):
        return op.Constant(value_ints=[*size, 2])
    return op.Concat(*(_one_size(s) for s in size), op.Constant(value_ints=[2]), axis=0)


def _one_size(size: Any) -> Any:
    """A number or a value as a vector of one element."""
    op = _op()
    return op.Constant(value_ints=[size]) if isinstance(size, int) else op.Reshape(size, op.Constant(value_ints=[-1]))


def complex_new_zeros(
    x: Any, size: Sequence[int], dtype: int = -1, layout: str = "", device: str = "", pin_memory: bool = False,
) -> Any:
    """Zeros of the given size, in pairs."""
    op = _op()
    return op.CastLike(op.Expand(op.Constant(value_float=0.0), _pair_shape(size)), x)


def complex_copy(x: Any, source: Any, non_blocking: bool = False) -> Any:
    """The source in the shape of x."""
    op = _op()
    return op.Expand(source, op.Shape(x))


def complex_slice_scatter(
    x: Any, source: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1,
) -> Any:
    """x with a slice along a dimension replaced by the source."""
    op = _op()
    if dim < 0:
        dim += len(x.shape) - 1
    length = op.Shape(x, start=dim, end=dim + 1)
    positions = op.Range(op.Constant(value_int=0), op.Squeeze(length), op.Constant(value_int=1))
    first, last = _one_size(0 if start is None else start), _one_size(2**62 if end is None else end)
    chosen = op.Slice(positions, first, last, op.Constant(value_ints=[0]), op.Constant(value_ints=[step]))
    shape = [1] * len(x.shape)
    shape[dim] = -1
    index = op.Expand(op.Reshape(chosen, op.Constant(value_ints=shape)), op.Shape(source))
    return op.ScatterElements(x, index, source, axis=dim)
