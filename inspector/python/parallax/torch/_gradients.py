# SPDX-License-Identifier: Apache-2.0
"""Decompositions of backward operators (and of forwards that go with them) that torch has none for.

Each function has the signature of its ATen operator and computes with operators that convert to ONNX. `N`, `C` are
batch and channels, `S` the spatial sizes of the input, `O` those of the output, `K` those of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
Sizes = Sequence[int]


def gradient_decompositions() -> dict[Any, Callable[..., Any]]:
    """ATen operator -> decomposition."""
    return {
        aten.convolution_backward.default: convolution_backward,
        aten.avg_pool2d_backward.default: avg_pool_backward,
        aten.avg_pool3d_backward.default: avg_pool_backward,
        aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool_backward,
        aten._adaptive_avg_pool3d_backward.default: adaptive_avg_pool_backward,
        aten.max_pool2d_with_indices_backward.default: max_pool_backward,
        aten.max_pool3d_with_indices_backward.default: max_pool_backward,
        aten.adaptive_max_pool2d_backward.default: adaptive_max_pool_backward,
        aten.adaptive_max_pool3d_backward.default: adaptive_max_pool_backward,
        aten.replication_pad1d_backward.default: replication_pad_backward,
        aten.replication_pad2d_backward.default: replication_pad_backward,
        aten.replication_pad3d_backward.default: replication_pad_backward,
        aten._embedding_bag.default: embedding_bag,
        aten._embedding_bag_forward_only.default: embedding_bag,
        aten._embedding_bag_backward.default: embedding_bag_backward,
        aten._embedding_bag_dense_backward.default: embedding_bag_dense_backward,
        aten._embedding_bag_per_sample_weights_backward.default: embedding_bag_weights_backward,
        aten._cdist_forward.default: cdist_forward,
        aten._cdist_backward.default: cdist_backward,
        aten._scaled_dot_product_flash_attention_for_cpu.default: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward,
    }


# --- convolution --------------------------------------------------------------------------------------------------


def convolution_backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias_sizes: Sizes | None, stride: Sizes, padding: Sizes, dilation: Sizes,
    transposed: bool, output_padding: Sizes, groups: int, output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of x [N,C,*S], weight and bias; any rank, groups, dilation and stride, transposed or not."""
    rank = x.dim() - 2
    stride, padding, dilation = (_per_axis(v, rank) for v in (stride, padding, dilation))
    grad_x = grad_weight = grad_bias = None
    if output_mask[0] and transposed:
        grad_x = aten.convolution(grad, weight, None, stride, padding, dilation, False, [0] * rank, groups)
        grad_x = _head(grad_x, x.shape[2:])
    elif output_mask[0]:
        grad_x = _convolution_input(grad, x.shape[2:], weight, stride, padding, dilation, groups)
    if output_mask[1]:
        source, filters = (grad, x) if transposed else (x, grad)
        grad_weight = _convolution_weight(source, filters, weight.shape[2:], stride, padding, dilation, groups)
    if output_mask[2]:
        grad_bias = grad.sum([0, *range(2, rank + 2)])
    return grad_x, grad_weight, grad_bias


def _convolution_input(
    grad: Tensor, sizes: Sizes, weight: Tensor, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
) -> Tensor:
    """The gradient of a convolution's input [N,C,*S], a transposed convolution."""
    zeros = [0] * len(sizes)
    reach = [
        (o - 1) * step + d * (k - 1) + 1
        for o, k, step, d in zip(grad.shape[2:], weight.shape[2:], stride, dilation)]
    missing = [s + 2 * p - r for s, p, r in zip(sizes, padding, reach)]
    if all(isinstance(m, int) for m in missing):
        exact: Tensor = aten.convolution(grad, weight, None, stride, padding, dilation, True, missing, groups)
        return exact
    # The size of the output is no attribute where it is unknown: all of it, cut to the input's size.
    full = aten.convolution(grad, weight, None, stride, zeros, dilation, True, zeros, groups)
    pads: list[int] = []
    for s, p, r in reversed(list(zip(sizes, padding, reach))):
        pads += [-p, s + p - r]
    cut: Tensor = aten.constant_pad_nd(full, pads)
    return cut


def _convolution_weight(
    source: Tensor, filters: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
) -> Tensor:
    """Correlation of source [N, G*A, *S] with filters [N, G*B, *O] in each group: [G*B, A, *K].

    It is a convolution in which batch and channels are exchanged, and stride and dilation, too.
    """
    rank = len(kernel)
    spatial = list(range(3, rank + 3))
    n, a, b = source.shape[0], source.shape[1] // groups, filters.shape[1] // groups
    source = source.reshape(n, groups, a, *source.shape[2:]).permute(2, 1, 0, *spatial)
    source = source.reshape(a, groups * n, *source.shape[3:])
    filters = filters.transpose(0, 1)
    result = aten.convolution(source, filters, None, dilation, padding, stride, False, [0] * rank, groups)
    return _head(result, kernel).transpose(0, 1).reshape(groups * b, a, *kernel)


def _head(x: Tensor, sizes: Sizes) -> Tensor:
    """The first elements along each spatial axis."""
    for axis, size in enumerate(sizes):
        x = x.narrow(axis + 2, 0, size)
    return x


def _per_axis(values: Sizes, rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


# --- pooling ------------------------------------------------------------------------------------------------------


def avg_pool_backward(
    grad: Tensor, x: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Every window spreads its gradient evenly over its elements: a transposed convolution with ones."""
    rank = 3 if x.dim() == 5 or (x.dim() == 4 and len(kernel) == 3) else 2
    kernel, padding = _per_axis(kernel, rank), _per_axis(padding, rank)
    stride = _per_axis(stride, rank) if len(stride) else kernel
    sizes, outs = x.shape[-rank:], grad.shape[-rank:]
    if divisor_override is not None:
        grad = grad / divisor_override
    else:
        for axis, (s, o, k, step, p) in enumerate(zip(sizes, outs, kernel, stride, padding)):
            first = torch.arange(o, device=grad.device) * step - p
            last = (first + k).clamp(max=s + p)
            if not count_include_pad:
                first, last = first.clamp(min=0), last.clamp(max=s)
            grad = grad / (last - first).to(grad.dtype).reshape([-1] + [1] * (rank - 1 - axis))
    flat = grad.reshape(-1, 1, *outs)
    ones = torch.ones([1, 1, *kernel], dtype=grad.dtype, device=grad.device)
    spread = aten.convolution(flat, ones, None, stride, [0] * rank, [1] * rank, True, [0] * rank, 1)
    pads: list[int] = []
    for s, o, k, step, p in reversed(list(zip(sizes, outs, kernel, stride, padding))):
        pads += [-p, s + p - ((o - 1) * step + k)]
    result: Tensor = aten.constant_pad_nd(spread, pads)
    return result.reshape(x.shape)


def adaptive_avg_pool_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Each axis is averaged by a matrix [O, S]; its transpose takes the gradient back."""
    rank = 3 if x.dim() == 5 else 2
    for axis in range(-rank, 0):
        o, s = grad.shape[axis], x.shape[axis]
        out = torch.arange(o, device=grad.device).unsqueeze(1)
        first, last = out * s // o, ((out + 1) * s + o - 1) // o
        position = torch.arange(s, device=grad.device)
        inside = (position >= first) & (position < last)
        average = inside.to(grad.dtype) / (last - first).to(grad.dtype)
        grad = (grad.transpose(axis, -1) @ average).transpose(axis, -1)
    return grad


def max_pool_backward(
    grad: Tensor, x: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Each window's gradient goes to the element its index names (counted within one channel)."""
    rank = 3 if x.dim() == 5 or (x.dim() == 4 and len(kernel) == 3) else 2
    return _scatter_to_maxima(grad, x, indices, rank)


def adaptive_max_pool_backward(grad: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    """As `max_pool_backward`; batched."""
    return _scatter_to_maxima(grad, x, indices, x.dim() - 2 if x.dim() > 3 else 2)


def _scatter_to_maxima(grad: Tensor, x: Tensor, indices: Tensor, rank: int) -> Tensor:
    outer = list(x.shape[:-rank])
    zeros = torch.zeros(x.shape, dtype=grad.dtype, device=grad.device).reshape([*outer, -1])
    return zeros.scatter_add(-1, indices.reshape([*outer, -1]), grad.reshape([*outer, -1])).reshape(x.shape)


def replication_pad_backward(grad: Tensor, x: Tensor, padding: Sizes) -> Tensor:
    """Padding copies border elements: their gradients are added up, axis by axis."""
    for number in range(len(padding) // 2):
        axis = x.dim() - 1 - number
        left, size = padding[2 * number], x.shape[axis]
        source = (torch.arange(grad.shape[axis], device=grad.device) - left).clamp(0, size - 1)
        shape = [*grad.shape[:axis], size, *grad.shape[axis + 1:]]
        zeros = torch.zeros(shape, dtype=grad.dtype, device=grad.device)
        grad = zeros.index_add(axis, source, grad)
    return grad


# --- embedding bags -----------------------------------------------------------------------------------------------

_SUM, _MEAN, _MAX = 0, 1, 2


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = _SUM,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows of weight [V,D] by indices [n], reduced over bags [B]: (result, bag of each index, bag sizes, maxima)."""
    if include_last_offset:
        offsets = offsets[:-1]
    bag = _bag_of_each(indices, offsets)
    counted = (indices != padding_idx) if padding_idx >= 0 else torch.ones_like(indices, dtype=torch.bool)
    sizes = torch.zeros_like(offsets, dtype=torch.int64).index_add(0, bag, counted.to(torch.int64))
    rows = weight.index_select(0, indices)
    if mode == _MAX:
        member = ((bag.unsqueeze(0) == torch.arange(offsets.shape[0], device=bag.device).unsqueeze(1)) & counted)
        candidates = torch.where(member.unsqueeze(2), rows.unsqueeze(0), -torch.inf)  # [B, n, D]
        best, where = candidates.max(1)
        filled = (sizes > 0).unsqueeze(1)
        maxima = torch.where(filled, indices.index_select(0, where.reshape(-1)).reshape(where.shape), -1)
        return torch.where(filled, best, 0.0), bag, sizes, maxima
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    rows = torch.where(counted.unsqueeze(1), rows, 0.0)
    zeros = torch.zeros([offsets.shape[0], weight.shape[1]], dtype=rows.dtype, device=rows.device)
    result = zeros.index_add(0, bag, rows)
    if mode == _MEAN:
        result = result / sizes.clamp(min=1).to(result.dtype).unsqueeze(1)
    return result, bag, sizes, torch.zeros_like(sizes)


def _bag_of_each(indices: Tensor, offsets: Tensor) -> Tensor:
    """The bag that each index is in: the last one that starts at or before its position."""
    position = torch.arange(indices.shape[0], device=indices.device)
    return (position.unsqueeze(1) >= offsets.unsqueeze(0)).to(torch.int64).sum(1) - 1


def embedding_bag_backward(
    grad: Tensor, indices: Tensor, offsets: Tensor, bag: Tensor, sizes: Tensor, maxima: Tensor, num_weights: int,
    scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Tensor | None, padding_idx: int = -1,
) -> Tensor:
    """The gradient of the weight, dense. Eager's forward leaves `bag` empty for sums: it is counted again."""
    if bag.shape[0] == 0:
        bag = _bag_of_each(indices, offsets)
    return embedding_bag_dense_backward(
        grad, indices, bag, sizes, maxima, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx)


def embedding_bag_dense_backward(
    grad: Tensor, indices: Tensor, bag: Tensor, sizes: Tensor, maxima: Tensor, num_weights: int,
    scale_grad_by_freq: bool, mode: int, per_sample_weights: Tensor | None, padding_idx: int = -1,
) -> Tensor:
    """The gradient of the weight [num_weights, D] from that of the bags [B, D]."""
    zeros = torch.zeros([num_weights, grad.shape[1]], dtype=grad.dtype, device=grad.device)
    if mode == _MAX:
        taken = maxima >= 0
        return zeros.scatter_add(0, maxima.clamp(min=0), torch.where(taken, grad, 0.0))
    if mode == _MEAN:
        grad = grad / sizes.clamp(min=1).to(grad.dtype).unsqueeze(1)
    rows = grad.index_select(0, bag)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    if scale_grad_by_freq:
        counts = torch.zeros([num_weights], dtype=grad.dtype, device=grad.device)
        counts = counts.index_add(0, indices, torch.ones_like(indices, dtype=grad.dtype))
        rows = rows / counts.index_select(0, indices).unsqueeze(1)
    if padding_idx >= 0:
        rows = torch.where((indices != padding_idx).unsqueeze(1), rows, 0.0)
    return zeros.index_add(0, indices, rows)


def embedding_bag_weights_backward(
    grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, bag: Tensor, mode: int, padding_idx: int = -1,
) -> Tensor:
    """The gradient of the weights of the samples."""
    result = (grad.index_select(0, bag) * weight.index_select(0, indices)).sum(1)
    return torch.where(indices != padding_idx, result, 0.0) if padding_idx >= 0 else result


# --- distances and attention --------------------------------------------------------------------------------------


def cdist_forward(x: Tensor, y: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """Distances of the rows of x [..,P,M] and y [..,R,M] in the p-norm: [..,P,R]."""
    distances: Tensor = torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), ord=p, dim=-1)
    return distances


def cdist_backward(grad: Tensor, x: Tensor, y: Tensor, p: float, distances: Tensor) -> Tensor:
    """The gradient of x; where a distance is 0, it is 0 as in eager."""
    difference = x.unsqueeze(-2) - y.unsqueeze(-3)
    far = distances.unsqueeze(-1)
    grad = grad.unsqueeze(-1)
    if p == 0.0:
        return torch.zeros_like(x)
    if p == 1.0:
        return (grad * difference.sign()).sum(-2)
    if p == float("inf"):
        return (grad * difference.sign() * (difference.abs() == far)).sum(-2)
    slope = difference if p == 2.0 else difference.sign() * difference.abs().pow(p - 1)
    scale = far if p == 2.0 else far.pow(p - 1)
    return torch.where(far == 0, 0.0, grad * slope / torch.where(far == 0, 1.0, scale)).sum(-2)


def attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of query [B,H,L,E] to key [B,H,T,E]: (result, logarithm of the sums of exponentials [B,H,L])."""
    heads = query.shape[1]
    scores = _scores(query, _repeat_heads(key, heads), is_causal, attn_mask, scale)
    total = torch.logsumexp(scores, -1)
    # A row that attends to nothing gives 0, as eager's kernel does.
    weights = torch.exp(scores - torch.where(total == -torch.inf, 0.0, total).unsqueeze(-1))
    result = weights.to(value.dtype) @ _repeat_heads(value, heads)
    return result.transpose(1, 2).contiguous().transpose(1, 2), total


def attention_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, result: Tensor, total: Tensor, dropout_p: float,
    is_causal: bool, *, attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and value."""
    heads, kept = query.shape[1], key.shape[1]
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    keys, values = _repeat_heads(key, heads), _repeat_heads(value, heads)
    scores = _scores(query, keys, is_causal, attn_mask, scale)
    weights = torch.exp(scores - torch.where(total == -torch.inf, 0.0, total).unsqueeze(-1)).to(value.dtype)
    through = grad @ values.mT - (grad * result).sum(-1, keepdim=True)
    inner = weights * through * factor
    grad_key, grad_value = inner.mT @ query, weights.mT @ grad
    return inner @ keys, _sum_heads(grad_key, kept), _sum_heads(grad_value, kept)


def _scores(query: Tensor, key: Tensor, is_causal: bool, mask: Tensor | None, scale: float | None) -> Tensor:
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.mT) * factor
    if is_causal:
        rows = torch.arange(query.shape[-2], device=query.device).unsqueeze(1)
        columns = torch.arange(key.shape[-2], device=query.device)
        scores = torch.where(columns <= rows, scores, -torch.inf)
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def _repeat_heads(x: Tensor, heads: int) -> Tensor:
    """Grouped queries: each head of x serves several of the queries'."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)


def _sum_heads(grad: Tensor, heads: int) -> Tensor:
    if grad.shape[1] == heads:
        return grad
    return grad.reshape(grad.shape[0], heads, grad.shape[1] // heads, *grad.shape[2:]).sum(2)
