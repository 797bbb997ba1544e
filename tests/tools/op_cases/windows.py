# SPDX-License-Identifier: Apache-2.0
"""Cases of convolutions and pools: automatic padding, ceil_mode, dilations, groups, versions, quantized forms."""
import itertools

import numpy as np

from .case import family, f16, f32, i8, i32, i64, numbers, u8

case = family("windows")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"


def pads_of(auto_pad, size, kernel, stride, dilation, pad):
    """(pads, output size) of one axis, by the text of Conv and the pools."""
    extent = (kernel - 1) * dilation + 1
    if auto_pad.startswith("SAME"):
        out = -(-size // stride)
        total = max((out - 1) * stride + extent - size, 0)
        small = total // 2
        return ((small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small)), out
    if auto_pad == "VALID":
        pad = (0, 0)
    return pad, (size + sum(pad) - extent) // stride + 1


def windows(x, kernel, strides, dilations, pads, sizes, fill):
    """Windows as [N, C, *sizes, *kernel]; what is outside is `fill`."""
    far = [(0, 0), (0, 0)] + [(p[0], (o - 1) * s + (k - 1) * d + 1) for p, o, s, k, d in zip(pads, sizes, strides, kernel, dilations)]
    padded = np.pad(x.astype(np.float64), far, constant_values=fill)
    out = np.empty([*x.shape[:2], *sizes, *kernel])
    for at in itertools.product(*map(range, sizes)):
        for inside in itertools.product(*map(range, kernel)):
            where = tuple(a * s + b * d for a, s, b, d in zip(at, strides, inside, dilations))
            out[(slice(None), slice(None), *at, *inside)] = padded[(slice(None), slice(None), *where)]
    return out


def conv(x, w, b=None, strides=None, dilations=None, pads=None, auto_pad="NOTSET", group=1):
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pairs = [(pads[k], pads[k + rank]) for k in range(rank)] if pads else [(0, 0)] * rank
    kernel = w.shape[2:]
    plans = [pads_of(auto_pad, *a) for a in zip(x.shape[2:], kernel, strides, dilations, pairs)]
    seen = windows(x, kernel, strides, dilations, [p for p, _ in plans], [o for _, o in plans], 0)
    per = w.shape[1]
    parts = []
    for g in range(group):
        mine = seen[:, g * per:(g + 1) * per].reshape(x.shape[0], per, int(np.prod([o for _, o in plans])), -1)
        weights = w.reshape(group, -1, per, int(np.prod(kernel)))[g].astype(np.float64)
        parts.append(np.einsum("ncpk,mck->nmp", mine, weights).reshape(x.shape[0], -1, *[o for _, o in plans]))
    y = np.concatenate(parts, 1)
    with np.errstate(over="ignore"):
        return (y if b is None else y + b.reshape(-1, *[1] * rank)).astype(x.dtype)


TEXT = "Conv: the sum over the window, padded as auto_pad says"
for auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
    for dims, kernel, strides, dilations in [([1, 2, 7], [3], [2], [1]), ([1, 1, 5, 6], [2, 4], [2, 3], [1, 1]), ([1, 2, 6], [2], [1], [2])]:
        x, w = numbers(dims, sum(dims)), numbers([2, dims[1], *kernel], sum(kernel))
        values = dict(auto_pad=auto_pad, strides=strides, dilations=dilations)
        case(f"conv_{auto_pad.lower()}_{len(dims) - 2}d_stride_{strides[0]}_dilation_{dilations[0]}", "Conv", 11, [x, w], values,
             [conv(x, w, **values)], spec=TEXT, unasked=(EVALUATOR,))
x, w, b = numbers([2, 4, 5, 5], 71), numbers([6, 2, 3, 2], 72), numbers([6], 73)
for name, values in [("groups_bias", dict(group=2)), ("groups_dilated_uneven_pads", dict(group=2, dilations=[2, 1], pads=[1, 0, 2, 1])),
                     ("strides_beyond_kernel", dict(group=2, strides=[4, 3]))]:
    case(f"conv_{name}", "Conv", 22, [x, w, b], values, [conv(x, w, b, **values)], spec=TEXT, unasked=(EVALUATOR,))
x, w = numbers([1, 3, 4, 4], 74), numbers([3, 1, 2, 2], 75)
case("conv_depthwise", "Conv", 1, [x, w], {"group": 3}, [conv(x, w, group=3)], spec=TEXT, unasked=(EVALUATOR,))
# Lines longer than a vector, strides that take every second or third column, padding on one side only.
x, w = numbers([2, 3, 7, 45], 180), numbers([6, 1, 3, 3], 181)
for name, values in [("stride_2", dict(strides=[2, 2], pads=[1, 1, 1, 1])), ("stride_3_pads_uneven", dict(strides=[1, 3], pads=[0, 2, 1, 0])),
                     ("stride_2_dilated", dict(strides=[1, 2], dilations=[1, 3], pads=[1, 1, 0, 4]))]:
    case(f"conv_depthwise_{name}", "Conv", 22, [x, w], dict(group=3) | values, [conv(x, w, group=3, **values)], spec=TEXT, unasked=(EVALUATOR,))
x, w = numbers([2, 6, 3, 13], 182), numbers([10, 3, 1, 1], 183)
case("conv_of_points_in_groups", "Conv", 22, [x, w], {"group": 2}, [conv(x, w, group=2)], spec=TEXT, unasked=(EVALUATOR,))
case("conv_of_points_stride_2", "Conv", 22, [x, w], {"group": 2, "strides": [1, 2]}, [conv(x, w, group=2, strides=[1, 2])], spec=TEXT,
     unasked=(EVALUATOR,))
x, w = numbers([1, 2, 37], 184), numbers([5, 2, 4], 185)
case("conv_1d_stride_3", "Conv", 22, [x, w], {"strides": [3], "pads": [2, 1]}, [conv(x, w, strides=[3], pads=[2, 1])], spec=TEXT, unasked=(EVALUATOR,))
x, w = numbers([1, 2, 3, 3, 3], 76), numbers([2, 2, 2, 1, 3], 77)
case("conv_3d", "Conv", 22, [x, w], {"pads": [1, 0, 1, 0, 0, 1]}, [conv(x, w, pads=[1, 0, 1, 0, 0, 1])], spec=TEXT, unasked=(EVALUATOR,))
x, w = numbers([1, 2, 4, 5, 9], 186), numbers([5, 2, 2, 2, 3], 187)
case("conv_3d_strides", "Conv", 22, [x, w], {"strides": [2, 1, 2], "pads": [1, 0, 1, 0, 0, 1]}, [conv(x, w, strides=[2, 1, 2], pads=[1, 0, 1, 0, 0, 1])],
     spec=TEXT, unasked=(EVALUATOR,))
x, w = numbers([0, 2, 4], 78), numbers([3, 2, 2], 79)
case("conv_no_batch", "Conv", 11, [x, w], {}, [f32([], [0, 3, 3])], spec=TEXT, constant="no elements, but a shape")
x, w = numbers([1, 2, 4, 3], 80, "float64"), numbers([1, 2, 2, 2], 81, "float64")
case("conv_float64", "Conv", 11, [x, w], {}, [conv(x, w)], spec=TEXT, unasked=(EVALUATOR,))
x, w = numbers([1, 1, 4], 82, "float16", 64), numbers([1, 1, 2], 83, "float16", 256)
case("conv_float16_overflow", "Conv", 11, [x, w], {}, [conv(x, w)], spec="the sum is rounded to its type once", unasked=(EVALUATOR,))


# ConvTranspose: every input element spreads over a window of the output.
def conv_transpose(x, w, b=None, strides=None, dilations=None, pads=None, output_padding=None, group=1, auto_pad="NOTSET", output_shape=None):
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    extra = output_padding or [0] * rank
    kernel = w.shape[2:]
    full = [s * (n - 1) + o + (k - 1) * d + 1 for s, n, o, k, d in zip(strides, x.shape[2:], extra, kernel, dilations)]
    if output_shape or auto_pad.startswith("SAME"):
        wanted = output_shape or [n * s for n, s in zip(x.shape[2:], strides)]
        totals = [max(f - o, 0) for f, o in zip(full, wanted)]
        begins = [t - t // 2 if auto_pad == "SAME_LOWER" else t // 2 for t in totals]
        if output_shape and auto_pad != "SAME_UPPER":
            begins = [t - t // 2 for t in totals]
        sizes = list(wanted)
    else:
        pads = pads or [0] * 2 * rank
        begins = pads[:rank]
        sizes = [f - pads[k] - pads[k + rank] for k, f in enumerate(full)]
    per_in, per_out = x.shape[1] // group, w.shape[1]
    y = np.zeros([x.shape[0], group * per_out, *[f + 8 for f in full]])
    for g in range(group):
        for at in itertools.product(*map(range, x.shape[2:])):
            for inside in itertools.product(*map(range, kernel)):
                where = tuple(a * s + k * d for a, s, k, d in zip(at, strides, inside, dilations))
                part = x[(slice(None), slice(g * per_in, (g + 1) * per_in), *at)].astype(np.float64)
                y[(slice(None), slice(g * per_out, (g + 1) * per_out), *where)] += part @ w[(slice(g * per_in, (g + 1) * per_in), slice(None), *inside)]
    y = y[(slice(None), slice(None), *[slice(p, p + o) for p, o in zip(begins, sizes)])]
    return (y if b is None else y + b.reshape(-1, *[1] * rank)).astype(x.dtype)


SPREAD = "ConvTranspose: total_padding = stride * (input - 1) + output_padding + (kernel - 1) * dilation + 1 - output_shape"
x, w = numbers([1, 2, 3, 4], 84), numbers([2, 3, 3, 2], 85)
for name, values in [("strides", dict(strides=[2, 3])), ("dilations_pads", dict(dilations=[2, 1], pads=[1, 0, 2, 1])),
                     ("output_padding_2d", dict(strides=[3, 2], output_padding=[2, 1])), ("same_upper", dict(strides=[2, 2], auto_pad="SAME_UPPER")),
                     ("same_lower", dict(strides=[2, 2], auto_pad="SAME_LOWER")), ("valid", dict(strides=[2, 1], auto_pad="VALID")),
                     ("output_shape", dict(strides=[2, 2], output_shape=[6, 7])),
                     ("output_shape_same_upper", dict(strides=[2, 2], output_shape=[6, 7], auto_pad="SAME_UPPER"))]:
    case(f"convtranspose_{name}", "ConvTranspose", 11, [x, w], values, [conv_transpose(x, w, **values)], spec=SPREAD, unasked=(EVALUATOR,))
x, w, b = numbers([1, 4, 5], 86), numbers([4, 2, 3], 87), numbers([4], 88)
case("convtranspose_1d_groups_bias", "ConvTranspose", 22, [x, w, b], {"group": 2, "strides": [2]}, [conv_transpose(x, w, b, strides=[2], group=2)],
     spec=SPREAD, unasked=(EVALUATOR,))
case("convtranspose_1", "ConvTranspose", 1, [numbers([1, 1, 2, 2], 89), numbers([1, 1, 2, 2], 90)])


# Pools. A window that would begin in the padding at the end is left out in ceil_mode.
def pool(x, kind, kernel, strides=None, dilations=None, pads=None, auto_pad="NOTSET", ceil_mode=0, count_include_pad=0, p=2):
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pairs = [(pads[k], pads[k + rank]) for k in range(rank)] if pads else [(0, 0)] * rank
    plans = [pads_of(auto_pad, *a) for a in zip(x.shape[2:], kernel, strides, dilations, pairs)]
    pads_used, sizes = [q for q, _ in plans], [o for _, o in plans]
    if ceil_mode and auto_pad in ("NOTSET", "VALID"):
        for k, (n, size, s, d, q) in enumerate(zip(x.shape[2:], kernel, strides, dilations, pads_used)):
            sizes[k] = -(-(n + sum(q) - (size - 1) * d - 1) // s) + 1
            if (sizes[k] - 1) * s >= n + q[0]:
                sizes[k] -= 1
    seen = windows(x, kernel, strides, dilations, pads_used, sizes, np.nan)
    axes = tuple(range(-rank, 0))
    if kind == "max":
        return np.nanmax(seen, axes).astype(x.dtype)
    if kind == "lp":
        return (np.nansum(np.abs(seen) ** p, axes) ** (1 / p)).astype(x.dtype)
    counted = np.ones_like(x)
    if count_include_pad:
        wide = [(0, 0), (0, 0)] + [tuple(q) for q in pads_used]
        counted = np.pad(counted, wide, constant_values=1)
        pads_used = [(0, 0)] * rank
    counts = np.nansum(windows(counted, kernel, strides, dilations, pads_used, sizes, np.nan), axes)
    return (np.nansum(seen, axes) / counts).astype(x.dtype)


POOL = "output_shape = ceil or floor of (input + pads - dilation * (kernel - 1) - 1) / stride + 1; windows beginning in the end padding are ignored"
x = numbers([1, 2, 6, 7], 91)
for name, op, opset, kind, values in [
        ("maxpool_ceil", "MaxPool", 12, "max", dict(kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1)),
        ("maxpool_ceil_pads", "MaxPool", 22, "max", dict(kernel_shape=[2, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1)),
        ("maxpool_dilations", "MaxPool", 12, "max", dict(kernel_shape=[2, 3], dilations=[3, 2], strides=[1, 2])),
        ("maxpool_same_lower", "MaxPool", 11, "max", dict(kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER")),
        ("maxpool_same_upper", "MaxPool", 8, "max", dict(kernel_shape=[4, 3], strides=[3, 2], auto_pad="SAME_UPPER")),
        ("maxpool_valid", "MaxPool", 1, "max", dict(kernel_shape=[4, 3], strides=[2, 2], auto_pad="VALID")),
        ("averagepool_ceil", "AveragePool", 19, "average", dict(kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1)),
        ("averagepool_ceil_count_pads", "AveragePool", 22, "average",
         dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1)),
        ("averagepool_pads_not_counted", "AveragePool", 11, "average", dict(kernel_shape=[3, 3], pads=[1, 0, 1, 2])),
        ("averagepool_pads_counted", "AveragePool", 7, "average", dict(kernel_shape=[3, 3], pads=[1, 0, 1, 2], count_include_pad=1)),
        ("averagepool_dilations", "AveragePool", 19, "average", dict(kernel_shape=[2, 2], dilations=[3, 2], pads=[1, 1, 1, 1])),
        ("averagepool_same_lower", "AveragePool", 11, "average", dict(kernel_shape=[2, 4], strides=[1, 3], auto_pad="SAME_LOWER")),
        ("averagepool_same_upper", "AveragePool", 19, "average", dict(kernel_shape=[2, 4], strides=[1, 3], auto_pad="SAME_UPPER")),
        ("lppool_p_1", "LpPool", 18, "lp", dict(kernel_shape=[2, 3], p=1, strides=[2, 2])),
        ("lppool_p_3_pads", "LpPool", 11, "lp", dict(kernel_shape=[3, 3], p=3, pads=[1, 0, 1, 1])),
        ("lppool_ceil", "LpPool", 22, "lp", dict(kernel_shape=[3, 3], strides=[2, 3], ceil_mode=1)),
        ("lppool_dilations", "LpPool", 18, "lp", dict(kernel_shape=[2, 2], dilations=[2, 3])),
        ("lppool_same_upper", "LpPool", 2, "lp", dict(kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"))]:
    known = {"kernel" if k == "kernel_shape" else k: v for k, v in values.items()}
    case(name, op, opset, [x], values, [pool(x, kind, **known)], spec=POOL, unasked=(EVALUATOR,))
case("maxpool_indices_row_major", "MaxPool", 12, [x], {"kernel_shape": [2, 2], "strides": [2, 3]}, count=2)
case("maxpool_indices_column_major", "MaxPool", 12, [x], {"kernel_shape": [2, 2], "strides": [2, 3], "storage_order": 1}, count=2)
case("maxpool_int8", "MaxPool", 12, [i8([[[-128, -5, -7, 3]]])], {"kernel_shape": [2], "pads": [1, 1]},
     [i8([[[-128, -5, -5, 3, 3]]])], spec="padding is less than any element")
case("maxpool_1d_negative_with_pads", "MaxPool", 11, [f32([[[-3, -1, -2]]])], {"kernel_shape": [3], "pads": [2, 1]},
     [f32([[[-3, -1, -1, -1]]])], spec="padding is less than any element")
case("averagepool_3d", "AveragePool", 22, [numbers([1, 1, 3, 3, 4], 92)], {"kernel_shape": [2, 3, 2], "strides": [1, 1, 2]})
case("averagepool_float16_wide_sum", "AveragePool", 11, [f16([[[60000, 60000, 60000, 2]]])], {"kernel_shape": [3]},
     [f16([[[60000, 40000]]])], spec="the mean is rounded once", unasked=(EVALUATOR,))
case("globalaveragepool_3d", "GlobalAveragePool", 22, [numbers([2, 2, 2, 3, 2], 93)])
case("globallppool_p_3", "GlobalLpPool", 2, [numbers([2, 3, 4, 2], 94)], {"p": 3},
     [(np.abs(numbers([2, 3, 4, 2], 94).astype(np.float64)) ** 3).sum((2, 3), keepdims=True).__pow__(1 / 3).astype(np.float32)],
     spec="GlobalLpPool: the p norm over all spatial dimensions")
case("globallppool_default_22", "GlobalLpPool", 22, [numbers([1, 2, 5], 95)], {},
     [np.sqrt((numbers([1, 2, 5], 95).astype(np.float64) ** 2).sum(2, keepdims=True)).astype(np.float32)], spec="GlobalLpPool: p is 2")
case("globalmaxpool_2d", "GlobalMaxPool", 22, [numbers([1, 2, 3, 3], 96)])
case("maxunpool_default_shape", "MaxUnpool", 11, [f32([[[[5, 6], [7, 8]]]]), i64([[[[0, 3], [9, 15]]]])], {"kernel_shape": [2, 2], "strides": [2, 2]},
     [f32([5, 0, 0, 6, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 8], [1, 1, 4, 4])], spec="MaxUnpool: output_shape = (input - 1) * stride + kernel")
case("maxunpool_output_shape", "MaxUnpool", 9, [f32([[[[5, 6], [7, 8]]]]), i64([[[[1, 3], [4, 8]]]]), i64([1, 1, 5, 5])],
     {"kernel_shape": [2, 2], "strides": [2, 2]}, [np.bincount([1, 3, 5, 10], [5, 6, 7, 8], 25).astype(np.float32).reshape(1, 1, 5, 5)],
     spec="MaxUnpool: indices are of the shape without output_shape, 4 x 4 here (the operator's example export_with_output_shape)",
     unasked=(EVALUATOR, ORT))

# Quantized convolutions.
xq, wq = u8(np.arange(1 * 2 * 4 * 4).reshape(1, 2, 4, 4) * 7 % 251), u8(np.arange(3 * 2 * 2 * 2).reshape(3, 2, 2, 2) * 31 % 255)
wide = conv(xq.astype(np.float64) - 100, wq.astype(np.float64) - 120)
case("convinteger_both_zero_points", "ConvInteger", 10, [xq, wq, u8(100), u8(120)], {}, [wide.astype(np.int32)],
     spec="ConvInteger: zero points are subtracted first")
by_channel = conv(xq.astype(np.float64) - 7, wq.astype(np.float64) - np.reshape([1, 50, 200], [3, 1, 1, 1]))
case("convinteger_zero_point_per_channel", "ConvInteger", 10, [xq, wq, u8(7), u8([1, 50, 200])], {}, [by_channel.astype(np.int32)],
     spec="ConvInteger: w_zero_point may be one for each output channel", unasked=(EVALUATOR, ORT))
padded = conv(xq.astype(np.float64) - 100, wq.astype(np.float64), pads=[1, 1, 0, 1], strides=[2, 1])
case("convinteger_padding_is_zero_point", "ConvInteger", 10, [xq, wq, u8(100)], {"pads": [1, 1, 0, 1], "strides": [2, 1]}, [padded.astype(np.int32)],
     spec="ConvInteger: padding is the zero point", unasked=(EVALUATOR,))
scales = f32([0.125, 0.25, 0.0625])
acc = conv(xq.astype(np.float64) - 3, i8(wq.astype(np.int64) - 128).astype(np.float64)) + np.reshape([5, -7, 11], [1, 3, 1, 1])
real = acc * (0.5 * scales.reshape(1, 3, 1, 1)) / 16
case("qlinearconv_per_channel_bias", "QLinearConv", 10, [xq, f32(0.5), u8(3), i8(wq.astype(np.int64) - 128), scales, i8([0, 0, 0]), f32(16), u8(100),
     i32([5, -7, 11])], {}, [np.clip(np.rint(real) + 100, 0, 255).astype(np.uint8)],
     spec="QLinearConv: bias has scale x_scale * w_scale and zero point 0; saturates, rounds halves to even")
