# SPDX-License-Identifier: Apache-2.0
"""Operators that have to train: functions of small tensors; floating ones want gradients.

Each is traced by aot_autograd, converted, run, and compared with eager: result and gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Case = tuple[Callable[..., Tensor], Sequence[Tensor]]


def g(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers that depend on shape and seed alone."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


ROWS = torch.tensor([[0, 1], [3, 1], [2, 0]])
BAG = (torch.tensor([0, 1, 2, 2, 5, 1]), torch.tensor([0, 2, 3]), g(6, 3))
MASK = torch.tensor([[True, False, True, True]] * 3)
QKV = (g(2, 3, 5, 8), g(2, 3, 5, 8, seed=1), g(2, 3, 5, 8, seed=2))


def _batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.batch_norm(x, torch.zeros(3), torch.ones(3), weight, bias, training=True)


def _lstm_cell(x: Tensor, h: Tensor, c: Tensor, wx: Tensor, wh: Tensor, b: Tensor) -> Tensor:
    i, f, update, o = (x @ wx.t() + h @ wh.t() + b).chunk(4, 1)
    return o.sigmoid() * (f.sigmoid() * c + i.sigmoid() * update.tanh()).tanh()


def _assign(x: Tensor, y: Tensor) -> Tensor:
    x = x.clone()
    x[:, 1:3] = y
    x[0] += 1
    return x


def _activations(x: Tensor) -> Tensor:
    return (F.elu(x) + F.leaky_relu(x) + F.softplus(x) + F.mish(x) + F.hardswish(x) + F.logsigmoid(x) + F.selu(x)
            + F.relu6(x) + F.hardsigmoid(x) + F.softsign(x) + F.softshrink(x) + F.hardshrink(x))


def _trigonometry(x: Tensor) -> Tensor:
    near, far = x / 9, x.abs() + 1.1
    return (x.sin() + x.cos() * x.tan() + x.atan() + near.asin() + near.acos() + x.sinh() + x.asinh() + far.acosh()
            + near.atanh() + x.erf() + x.expm1() + x.abs().log1p() + torch.atan2(x, x * x + 1))


def _powers(x: Tensor, y: Tensor) -> Tensor:
    positive = x.abs() + 0.1
    return (positive ** y + x ** 3 + 2.0 ** x + positive.rsqrt() + positive.sqrt() + torch.hypot(x, y)
            + torch.lerp(x, y, 0.3) + torch.addcmul(x, x, y) + torch.fmod(x, 2.0) + torch.remainder(y, 0.7)
            + torch.maximum(x, y) * torch.minimum(x, y))


CASES: dict[str, Case] = {
    "linear": (F.linear, [g(3, 4), g(5, 4), g(5)]),
    "matmul_broadcast": (torch.matmul, [g(2, 1, 3, 4), g(5, 4, 6)]),
    "einsum": (lambda a, b: torch.einsum("bij,bkj->bki", a, b), [g(2, 3, 4), g(2, 5, 4)]),
    "baddbmm": (lambda a, b, c: torch.baddbmm(a, b, c, beta=0.5, alpha=2.0), [g(2, 3, 5), g(2, 3, 4), g(2, 4, 5)]),
    "bilinear": (F.bilinear, [g(3, 4), g(3, 5), g(2, 4, 5), g(2)]),
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1), [g(2, 3, 9), g(4, 3, 3), g(4)]),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1, dilation=2), [g(2, 3, 7, 8), g(4, 3, 3, 2), g(4)]),
    "conv2d_strided": (lambda x, w: F.conv2d(x, w, stride=(2, 3), padding=(1, 2)), [g(2, 3, 8, 9), g(4, 3, 3, 2)]),
    "conv2d_grouped": (lambda x, w, b: F.conv2d(x, w, b, groups=2, stride=2), [g(2, 4, 7, 8), g(6, 2, 3, 3), g(6)]),
    "conv2d_depthwise": (lambda x, w: F.conv2d(x, w, groups=4, padding=1), [g(2, 4, 5, 6), g(4, 1, 3, 3)]),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=1, stride=(1, 2, 1)), [g(1, 2, 4, 5, 6), g(3, 2, 3, 3, 2)]),
    "conv_transpose1d": (
        lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, padding=1, output_padding=1),
        [g(2, 3, 5), g(3, 4, 3), g(4)]),
    "conv_transpose2d_grouped": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(2, 1), padding=(0, 1), groups=2),
        [g(2, 4, 5, 6), g(4, 3, 3, 2), g(6)]),
    "batch_norm_training": (_batch_norm, [g(4, 3, 5, 2), g(3), g(3, seed=1)]),
    "batch_norm_inference": (
        lambda x, w, b: F.batch_norm(x, torch.full((3,), 0.2), torch.full((3,), 1.3), w, b),
        [g(4, 3, 5, 2), g(3), g(3, seed=1)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4, 5), w, b), [g(3, 4, 5), g(4, 5), g(4, 5, seed=1)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (5,), w), [g(3, 4, 5), g(5)]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [g(3, 4, 5), g(4), g(4, seed=1)]),
    "instance_norm": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [g(3, 4, 5, 2), g(4), g(4, seed=1)]),
    "embedding": (lambda i, w: F.embedding(i, w, padding_idx=1), [torch.tensor([[0, 1, 2], [2, 5, 1]]), g(6, 3)]),
    "embedding_bag_sum": (lambda i, o, w: F.embedding_bag(i, w, o, mode="sum"), BAG),
    "embedding_bag_mean": (lambda i, o, w: F.embedding_bag(i, w, o, mode="mean"), BAG),
    "embedding_bag_max": (lambda i, o, w: F.embedding_bag(i, w, o, mode="max"), BAG),
    "gelu": (F.gelu, [g(3, 4)]),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [g(3, 4)]),
    "silu": (F.silu, [g(3, 4)]),
    "activations": (_activations, [g(3, 4)]),
    "prelu_glu": (lambda x, w: F.glu(F.prelu(x, w), 1), [g(3, 4), g(4)]),
    "softmax": (lambda x: F.softmax(x, 1), [g(3, 4, 2)]),
    "cross_entropy_ignore_index": (
        lambda x, t: F.cross_entropy(x, t, ignore_index=2), [g(5, 4), torch.tensor([0, 1, 2, 3, 1])]),
    "cross_entropy_smooth": (
        lambda x, t: F.cross_entropy(x, t, weight=torch.tensor([1.0, 2.0, 0.5, 3.0]), label_smoothing=0.1),
        [g(5, 4, 2), torch.tensor([[0, 1], [2, 3], [1, 0], [0, 0], [3, 3]])]),
    "bce_with_logits": (lambda x, t: F.binary_cross_entropy_with_logits(x, t.sigmoid()), [g(3, 4), g(3, 4, seed=2)]),
    "losses": (
        lambda x, t: F.mse_loss(x, t) + F.smooth_l1_loss(x, t) + F.huber_loss(x, t) + F.l1_loss(x, t),
        [g(3, 4), g(3, 4, seed=2)]),
    "kl_div": (
        lambda x, t: F.kl_div(x.log_softmax(1), t.softmax(1), reduction="batchmean"), [g(3, 4), g(3, 4, seed=2)]),
    "cosine_similarity": (F.cosine_similarity, [g(3, 4), g(3, 4, seed=2)]),
    "dropout": (lambda x: F.dropout(x, 0.3, training=True), [g(30, 4)]),
    "random_numbers": (
        lambda x: x + torch.rand_like(x) * torch.randn(3, 4) * torch.bernoulli(torch.full((3, 4), 0.5)), [g(3, 4)]),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), [g(2, 3, 9)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, (3, 2), 2, padding=1, dilation=(1, 2)), [g(2, 3, 9, 8)]),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), [g(2, 3, 4, 5, 6)]),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), [g(2, 3, 9)]),
    "avg_pool2d": (
        lambda x: F.avg_pool2d(x, (3, 2), 2, padding=1, count_include_pad=False, ceil_mode=True), [g(2, 3, 9, 8)]),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2, padding=1), [g(2, 3, 4, 5, 6)]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), [g(2, 3, 5, 7)]),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (2, 3)), [g(2, 3, 4, 6)]),
    "interpolate_nearest": (lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), [g(2, 3, 4, 5)]),
    "interpolate_bilinear": (lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"), [g(2, 3, 4, 5)]),
    "interpolate_corners": (
        lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True), [g(2, 3, 4, 5)]),
    "attention": (F.scaled_dot_product_attention, QKV),
    "attention_mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        [*QKV, torch.tensor([[True, False, True, True, True]] * 5)]),
    "attention_causal_dropout": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.3), QKV),
    "cumsum": (lambda x: x.cumsum(1), [g(3, 4)]),
    "cumprod": (lambda x: x.cumprod(1), [g(3, 4)]),
    "gather": (lambda x, i: x.gather(1, i), [g(3, 4), torch.tensor([[0, 0], [3, 1], [2, 2]])]),
    "scatter": (lambda x, i, s: x.scatter(1, i, s), [g(3, 4), ROWS, g(3, 2)]),
    "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), [g(3, 4), ROWS, g(3, 2)]),
    "scatter_reduce": (lambda x, i, s: x.scatter_reduce(1, i, s, "amax"), [g(3, 4), ROWS, g(3, 2)]),
    "index": (lambda x, i, j: x[i, :, j], [g(4, 3, 5), torch.tensor([0, 2, 2]), torch.tensor([1, 1, 4])]),
    "index_constant": (lambda x: x[:, torch.tensor([2, 0, 0])] * torch.tensor([1.0, 2.0, 3.0]), [g(4, 3)]),
    "index_put": (lambda x, i, v: x.index_put((i,), v), [g(4, 3), torch.tensor([0, 2]), g(2, 3)]),
    "index_put_accumulate": (
        lambda x, i, v: x.index_put((i,), v, accumulate=True), [g(4, 3), torch.tensor([0, 0, 2]), g(3, 3)]),
    "index_add_select": (
        lambda x, i, v: x.index_add(0, i, v).index_select(0, i), [g(4, 3), torch.tensor([0, 0, 2]), g(3, 3)]),
    "masked_fill_where": (lambda x, m: x.masked_fill(m, 0.5) * torch.where(m, x, 2 * x), [g(3, 4), MASK]),
    "slice_assignment": (_assign, [g(3, 4), g(3, 2)]),
    "cat_stack_split": (
        lambda x, y: torch.stack(torch.cat([x, y], 1).split([3, 3, 2], 1)[:2]) + torch.cat([x, y]).chunk(4, 1)[0].sum(),
        [g(3, 4), g(3, 4, seed=1)]),
    "pad_reflect": (lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), [g(2, 3, 4, 5)]),
    "pad_replicate": (lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), [g(2, 3, 4, 5)]),
    "pad_circular": (lambda x: F.pad(x, (1, 2), mode="circular"), [g(2, 3, 5)]),
    "roll_flip": (lambda x: torch.roll(x, (1, 2), (0, 1)).flip(1), [g(3, 4)]),
    "sort_topk": (lambda x: torch.sort(x, dim=1, descending=True)[0][:, :2] + torch.topk(x, 2, dim=1)[0], [g(3, 4)]),
    "max_min_median": (lambda x: x.max(1)[0] + x.min(1)[0] + x.amax(1) + x.median(1)[0], [g(3, 5)]),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=1) + x.norm(p=1, dim=1), [g(3, 4)]),
    "var_std": (lambda x: x.var(1) + x.std(1, correction=0) + x.std(), [g(3, 4)]),
    "logsumexp": (lambda x: x.logsumexp(1) + torch.logaddexp(x, x * x).sum(1), [g(3, 4)]),
    "prod_mean": (lambda x: x.prod(1) + x.mean(1) + x.square().mean(), [g(3, 4)]),
    "clamp_hardtanh": (lambda x: x.clamp(-0.5, 0.7) + F.hardtanh(x, -1, 0.3) + x.clamp(min=0.1), [g(3, 4)]),
    "trigonometry": (_trigonometry, [g(3, 4)]),
    "powers": (_powers, [g(3, 4), g(3, 4, seed=2)]),
    "cdist": (torch.cdist, [g(3, 4), g(5, 4)]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [g(2, 8, 3, 2)]),
    "unfold_fold": (lambda x: F.fold(F.unfold(x, 2), (4, 5), 2), [g(2, 3, 4, 5)]),
    "diagonals": (lambda x: x.tril() + x.triu(1) + torch.diag_embed(x.diagonal(1), 1) + x.trace(), [g(4, 4)]),
    "lstm_cell": (_lstm_cell, [g(2, 3), g(2, 4), g(2, 4, seed=1), g(16, 3), g(16, 4), g(16)]),
    "complex_rotation": (
        lambda x, t: torch.view_as_real(torch.view_as_complex(x) * torch.polar(torch.ones_like(t), t)),
        [g(3, 4, 2), g(3, 4)]),
    "fft": (lambda x: torch.view_as_real(torch.fft.rfft(x)), [g(3, 8)]),
    "float16": (lambda x, w: F.linear(x.half(), w.half()).float(), [g(3, 4), g(5, 4)]),
    "mixed_types": (
        lambda x, i: x * i + i / 3 + (x.double() * x).float() + (x > 0) * x, [g(3, 4), torch.arange(12).reshape(3, 4)]),
}

REFUSED: dict[str, tuple[Callable[..., Tensor], Sequence[Tensor], str]] = {
    "inverse": (lambda x: torch.linalg.inv(x @ x.mT + torch.eye(3)), [g(3, 3)], "aten.linalg_inv_ex.default"),
    "determinant": (torch.linalg.det, [g(3, 3)], "aten._linalg_det.default"),
    "grid_sample": (
        lambda x, grid: F.grid_sample(x, grid.tanh(), align_corners=False), [g(2, 3, 4, 5), g(2, 3, 3, 2)],
        "aten.grid_sampler_2d_backward.default"),
}
"""Operators that have no conversion, and the ATen operator that the error names."""


def arguments_of(tensors: Sequence[Tensor]) -> list[Any]:
    """Copies of a case's tensors; floating ones want gradients."""
    return [t.clone().requires_grad_() if t.is_floating_point() else t for t in tensors]
