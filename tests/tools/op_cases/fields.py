# SPDX-License-Identifier: Apache-2.0
"""Cases of normalizations, resampling, regions and grids: versions, epsilon, stash types, coordinate modes."""
import numpy as np
import torch

from .case import family, f16, f32, i8, i64, numbers, u8

case = family("fields")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"
N4 = numbers([2, 4, 2, 3], 401)


def by_channel(values, rank):
    return np.asarray(values, np.float64).reshape(-1, *[1] * (rank - 2))


def batch_norm(x, scale, bias, mean, var, epsilon=1e-5):
    s, b, m, v = (by_channel(a, x.ndim) for a in (scale, bias, mean, var))
    return ((x - m) / np.sqrt(v + epsilon) * s + b).astype(x.dtype)


# A variance near epsilon shows whether epsilon is there.
SCALE, BIAS, MEAN, VAR = f32([1.5, -2, 0.5, 1]), f32([0.5, 0, -1, 2]), f32([0.25, -0.5, 1, 0]), f32([1e-5, 0.25, 4, 2e-5])
BN = "BatchNormalization: (X - mean) / sqrt(var + epsilon) * scale + B"
for opset in (7, 9, 14, 15):
    case(f"batchnormalization_{opset}_epsilon", "BatchNormalization", opset, [N4, SCALE, BIAS, MEAN, VAR], {"epsilon": 0.001 if opset == 9 else 1e-5},
         [batch_norm(N4, SCALE, BIAS, MEAN, VAR, 0.001 if opset == 9 else 1e-5)], spec=BN, unasked=(EVALUATOR,) if opset in (7, 9) else ())
case("batchnormalization_6_spatial", "BatchNormalization", 6, [N4, SCALE, BIAS, MEAN, VAR], {"is_test": 1},
     [batch_norm(N4, SCALE, BIAS, MEAN, VAR)], spec=BN, unasked=(EVALUATOR, ORT))
case("batchnormalization_rank_2", "BatchNormalization", 15, [N4[:, :, 0, 0].copy(), SCALE, BIAS, MEAN, VAR], None,
     [batch_norm(N4[:, :, 0, 0], SCALE, BIAS, MEAN, VAR)], spec=BN)
mean, var = N4.mean((0, 2, 3), dtype=np.float64), N4.astype(np.float64).var((0, 2, 3))
case("batchnormalization_training", "BatchNormalization", 15, [N4, SCALE, BIAS, MEAN, VAR], {"training_mode": 1, "momentum": 0.75},
     [batch_norm(N4, SCALE, BIAS, mean, var), (MEAN * 0.75 + mean * 0.25).astype(np.float32), (VAR * 0.75 + var * 0.25).astype(np.float32)],
     spec="BatchNormalization-15: population mean and variance of the batch; running = input * momentum + current * (1 - momentum)", unasked=(ORT,))
case("batchnormalization_float16_float32_statistics", "BatchNormalization", 15, [N4.astype(np.float16), SCALE, BIAS, MEAN, VAR], None,
     [batch_norm(N4, SCALE, BIAS, MEAN, VAR).astype(np.float16)], spec=BN, unasked=(ORT, EVALUATOR))


def standardized(x, axes, epsilon):
    wide = x.astype(np.float64)
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + epsilon)


SMALL = (N4 * np.float32(0.01)).astype(np.float32)  # its variance is of the size of epsilon
case("instancenormalization_epsilon", "InstanceNormalization", 6, [SMALL, SCALE, BIAS], {"epsilon": 0.0001},
     [(standardized(SMALL, (2, 3), 1e-4) * by_channel(SCALE, 4) + by_channel(BIAS, 4)).astype(np.float32)],
     spec="InstanceNormalization: scale * (x - mean) / sqrt(variance + epsilon) + B, mean and variance per instance per channel")
FAR = (1000 + SMALL).astype(np.float32)
WIDE = f32(1000 + 0.01 * np.sin(np.arange(40)), [2, 20])
case("layernormalization_far_from_zero", "LayerNormalization", 17, [WIDE, f32(np.full(20, 0.5)), f32(np.full(20, 0.25))], {"epsilon": 1e-9},
     [(standardized(WIDE, 1, 1e-9) * 0.5 + 0.25).astype(np.float32)], spec="LayerNormalization: (x - mean) / sqrt(variance + epsilon) * scale + B",
     wrong={ORT: "the mean is a float", EVALUATOR: "the mean is a float"})
case("instancenormalization_far_from_zero", "InstanceNormalization", 6, [FAR, SCALE, BIAS], {"epsilon": 1e-9},
     [(standardized(FAR, (2, 3), 1e-9) * by_channel(SCALE, 4) + by_channel(BIAS, 4)).astype(np.float32)],
     spec="InstanceNormalization: scale * (x - mean) / sqrt(variance + epsilon) + B, mean and variance per instance per channel",
     wrong={ORT: "x * factor + offset cancels", EVALUATOR: "the mean is a float"})
case("instancenormalization_1d", "InstanceNormalization", 22, [numbers([2, 4, 5], 402), SCALE, BIAS])
groups = standardized(SMALL.reshape(2, 2, 2, 2, 3), (2, 3, 4), 1e-5).reshape(N4.shape)
case("groupnormalization_21_scale_per_channel", "GroupNormalization", 21, [SMALL, SCALE, BIAS], {"num_groups": 2},
     [(groups * by_channel(SCALE, 4) + by_channel(BIAS, 4)).astype(np.float32)], spec="GroupNormalization-21: scale and bias are per channel",
     unasked=(EVALUATOR,))
LN = "LayerNormalization: mean and variance over the axes from axis on"
for axis in (-1, 1, -3):
    axes = tuple(range(axis % 4, 4))
    shape = [SMALL.shape[a] for a in axes]
    g, b = numbers(shape, 403), numbers(shape, 404)
    wide = SMALL.astype(np.float64)
    deviation = 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    case(f"layernormalization_from_axis_{axis % 4}{'_negative' if axis < -1 else ''}", "LayerNormalization", 17, [SMALL, g, b], {"axis": axis},
         [(standardized(SMALL, axes, 1e-5) * g + b).astype(np.float32), wide.mean(axes, keepdims=True).astype(np.float32),
          deviation.astype(np.float32)], spec=LN)
case("layernormalization_no_bias", "LayerNormalization", 17, [SMALL, numbers([3], 405)], {"epsilon": 0.01},
     [(standardized(SMALL, (3,), 0.01) * numbers([3], 405)).astype(np.float32)], spec=LN)
WIDE16 = f16([[300, -300, 100, 200], [1, 2, 3, 2]])
case("layernormalization_float16_stash_float32", "LayerNormalization", 17, [WIDE16, f16([1, 2, 1, 0.5]), f16([0, 1, 0, 0])], None,
     [(standardized(WIDE16, (1,), 1e-5) * [1, 2, 1, 0.5] + [0, 1, 0, 0]).astype(np.float16)],
     spec="LayerNormalization: the first stage runs in float32 (stash_type 1), squares of halves do not overflow",
     wrong={EVALUATOR: "computes in half precision"})
case("rmsnormalization_axis", "RMSNormalization", 23, [SMALL, numbers([2, 3], 406)], {"axis": 2, "epsilon": 0.0001},
     [(SMALL / np.sqrt((SMALL.astype(np.float64) ** 2).mean((2, 3), keepdims=True) + 1e-4) * numbers([2, 3], 406)).astype(np.float32)],
     spec="RMSNormalization: X / sqrt(mean(X^2) + epsilon) * scale")
case("rmsnormalization_float16_stash_float32", "RMSNormalization", 23, [WIDE16, f16([1, 2, 1, 0.5])], None,
     [(WIDE16 / np.sqrt((WIDE16.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5) * [1, 2, 1, 0.5]).astype(np.float16)],
     spec="RMSNormalization: squares of halves do not overflow in stash_type float32", unasked=(EVALUATOR, ORT))


def lrn(x, size, alpha=1e-4, beta=0.75, bias=1.0):
    squares, channels = x.astype(np.float64) ** 2, x.shape[1]
    total = np.stack([squares[:, max(0, c - (size - 1) // 2):min(channels, c + (size - 1) - (size - 1) // 2 + 1)].sum(1) for c in range(channels)], 1)
    return (x / (bias + alpha / size * total) ** beta).astype(x.dtype)


LRN = "LRN: square_sum over channels max(0, c - floor((size - 1) / 2)) to min(C - 1, c + ceil((size - 1) / 2))"
x = numbers([2, 5, 2, 2], 407)
case("lrn_even_size", "LRN", 13, [x], {"size": 4, "alpha": 0.75, "beta": 0.5, "bias": 2.0}, [lrn(x, 4, 0.75, 0.5, 2)], spec=LRN, unasked=(EVALUATOR, ORT))
case("lrn_defaults_1", "LRN", 1, [(x * 100).astype(np.float32)], {"size": 3}, [lrn((x * 100).astype(np.float32), 3)], spec=LRN, unasked=(EVALUATOR,))
case("lrn_size_beyond_channels", "LRN", 13, [x], {"size": 9, "alpha": 0.5}, [lrn(x, 9, 0.5)], spec=LRN, unasked=(EVALUATOR,))
case("lrn_3d", "LRN", 13, [numbers([1, 3, 2], 408)], {"size": 2, "alpha": 1.0}, [lrn(numbers([1, 3, 2], 408), 2, 1.0)], spec=LRN, unasked=(EVALUATOR, ORT))


# Resize, along one axis after the other.
def coordinates(mode, out, size, scale, roi=(0, 1)):
    o = np.arange(out, dtype=np.float64)
    if mode == "asymmetric":
        return o / scale
    if mode == "align_corners":
        return o * (size - 1) / (scale * size - 1) if out > 1 else np.zeros(out)
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - out / (scale * size)) + (o + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel" and out == 1:
        return np.zeros(1)
    if mode == "tf_crop_and_resize":
        start, end = roi
        if out == 1:
            return np.array([0.5 * (start + end) * (size - 1)])
        return start * (size - 1) + o * (end - start) * (size - 1) / (out - 1)
    return (o + 0.5) / scale - 0.5


def resize_axis(x, axis, out, scale, mode="nearest", coordinate="half_pixel", nearest="round_prefer_floor", a=-0.75, exclude_outside=0,
                roi=(0, 1), extrapolation=0.0):
    size, x = x.shape[axis], np.moveaxis(x.astype(np.float64), axis, 0)
    rows = []
    for at in coordinates(coordinate, out, size, scale, roi):
        if coordinate == "tf_crop_and_resize" and not 0 <= at <= size - 1:
            rows.append(np.full(x.shape[1:], extrapolation))
            continue
        low = int(np.floor(at))
        part = at - low
        if mode == "nearest":
            index = {"round_prefer_floor": np.ceil(at - 0.5), "round_prefer_ceil": np.floor(at + 0.5), "floor": np.floor(at), "ceil": np.ceil(at)}[nearest]
            taps = {int(index): 1.0}
        elif mode == "linear":
            taps = {low: 1 - part, low + 1: part}
        else:
            taps = {}
            for k in range(-1, 3):
                d = abs(part - k)
                w = ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                taps[low + k] = w
            if exclude_outside:
                taps = {k: w for k, w in taps.items() if 0 <= k < size}
                taps = {k: w / sum(taps.values()) for k, w in taps.items()}
        rows.append(sum(w * x[min(max(k, 0), size - 1)] for k, w in taps.items()))
    return np.moveaxis(np.array(rows), 0, axis)


GRID = numbers([1, 1, 3, 4], 411)
RESIZE = "Resize: coordinate transformation, then interpolation axis by axis"
for coordinate in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
    for mode in ("nearest", "linear", "cubic"):
        scales = [1.5, 2.25] if coordinate != "pytorch_half_pixel" else [0.34, 1.75]
        out = [int(np.floor(n * s)) for n, s in zip(GRID.shape[2:], scales)]
        align = coordinate == "align_corners" and mode != "nearest"
        y = resize_axis(resize_axis(GRID, 2, out[0], scales[0], mode, coordinate), 3, out[1], scales[1], mode, coordinate)
        case(f"resize_{coordinate}_{mode}", "Resize", 19 if coordinate == "half_pixel_symmetric" else 13,
             [GRID, None, f32([1, 1, *scales])], {"mode": mode, "coordinate_transformation_mode": coordinate}, [y.astype(np.float32)], spec=RESIZE,
             unasked=(EVALUATOR, ORT) if coordinate == "half_pixel_symmetric" else (EVALUATOR,),
             wrong={ORT: "takes the whole length where the examples take scale * length"} if align else {})
for nearest in ("round_prefer_ceil", "floor", "ceil"):
    y = resize_axis(GRID, 3, 6, 1.5, "nearest", "half_pixel", nearest)
    case(f"resize_nearest_{nearest}", "Resize", 11, [GRID, f32([]), f32([1, 1, 1, 1.5])], {"mode": "nearest", "nearest_mode": nearest,
         "coordinate_transformation_mode": "half_pixel"}, [y.astype(np.float32)], spec=RESIZE, unasked=(EVALUATOR,))
case("resize_nearest_tf_half_pixel_leaves_other_axes", "Resize", 11, [f32([1, 2, 3, 4], [1, 2, 1, 2]), f32([]), f32([1, 1, 1, 2])], {"mode": "nearest",
     "nearest_mode": "ceil", "coordinate_transformation_mode": "tf_half_pixel_for_nn"}, [f32([2, 2, 2, 2, 4, 4, 4, 4], [1, 2, 1, 4])],
     spec="Resize: an axis that keeps its size keeps its elements", unasked=(EVALUATOR,))
y = resize_axis(GRID, 3, 7, 7 / 4, "cubic", "half_pixel", a=-0.5, exclude_outside=1)
case("resize_cubic_coefficient_exclude_outside", "Resize", 18, [GRID, None, None, i64([7])], {"mode": "cubic", "cubic_coeff_a": -0.5,
     "exclude_outside": 1, "axes": [3]}, [y.astype(np.float32)], spec=RESIZE, unasked=(ORT,))
y = resize_axis(GRID, 3, 5, 1, "linear", "tf_crop_and_resize", roi=(0.25, 1.25), extrapolation=9)
case("resize_crop_extrapolates", "Resize", 13, [GRID, f32([0, 0, 0, 0.25, 1, 1, 1, 1.25]), None, i64([1, 1, 3, 5])], {"mode": "linear",
     "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0}, [y.astype(np.float32)], spec=RESIZE)
case("resize_crop_extrapolates_integers", "Resize", 13, [i8(np.arange(1, 7), [1, 1, 2, 3]), f32([0, 0, 0, 0, 1, 1, 1, 1.2]), None, i64([1, 1, 2, 6])],
     {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 5.0})
y = resize_axis(GRID, 2, 6, 2, "linear")
case("resize_keep_aspect_not_larger", "Resize", 18, [GRID, None, None, i64([6, 20])], {"mode": "linear", "axes": [2, 3],
     "keep_aspect_ratio_policy": "not_larger"}, [resize_axis(y, 3, 8, 2, "linear").astype(np.float32)], spec=RESIZE)
case("resize_keep_aspect_not_smaller", "Resize", 19, [GRID, None, None, i64([6, 6])], {"mode": "linear", "axes": [2, 3],
     "keep_aspect_ratio_policy": "not_smaller"}, [resize_axis(y, 3, 8, 2, "linear").astype(np.float32)], spec=RESIZE)
case("resize_10_linear", "Resize", 10, [GRID, f32([1, 1, 2, 1.5])], {"mode": "linear"},
     [resize_axis(resize_axis(GRID, 2, 6, 2, "linear", "asymmetric"), 3, 6, 1.5, "linear", "asymmetric").astype(np.float32)],
     spec="Resize-10: coordinates are asymmetric", unasked=(EVALUATOR,))
case("resize_uint8_linear", "Resize", 13, [u8([[[[0, 254, 10]]]]), None, None, i64([1, 1, 1, 5])], {"mode": "linear", "coordinate_transformation_mode":
     "align_corners"}, [u8([[[[0, 127, 254, 132, 10]]]])], spec=RESIZE, unasked=(EVALUATOR,))
case("upsample_9_nearest", "Upsample", 9, [GRID, f32([1, 1, 2, 3])])
case("upsample_7_linear", "Upsample", 7, [GRID], {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"},
     [resize_axis(resize_axis(GRID, 2, 6, 2, "linear", "asymmetric"), 3, 8, 2, "linear", "asymmetric").astype(np.float32)],
     spec="Upsample: coordinates are asymmetric", unasked=(EVALUATOR,))

# GridSample, AffineGrid: PyTorch's functions of these names are what the text describes.
FIELD, POINTS = numbers([1, 2, 3, 4], 421), f32([[[[-1.2, -0.9], [0.1, 0.3], [0.75, 1.1]], [[-0.5, 0.5], [2.4, -0.25], [0, 0]]]])
WORDS = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


def torch_grid_sample(mode, padding, align):
    return torch.nn.functional.grid_sample(torch.from_numpy(FIELD), torch.from_numpy(POINTS), WORDS[mode], padding, bool(align)).numpy()


def torch_affine_grid(theta, size, align):
    return torch.nn.functional.affine_grid(torch.from_numpy(theta), size, bool(align)).numpy()


for mode in WORDS:
    for padding in ("zeros", "border", "reflection"):
        for align in (0, 1):
            case(f"gridsample_{mode}_{padding}_align_{align}", "GridSample", 20, [FIELD, POINTS], {"mode": mode, "padding_mode": padding,
                 "align_corners": align}, unasked=(EVALUATOR,), also={"torch": [torch_grid_sample(mode, padding, align)]})
case("gridsample_16_bilinear", "GridSample", 16, [FIELD, POINTS], {"mode": "bilinear"}, unasked=(EVALUATOR,),
     also={"torch": [torch_grid_sample("linear", "zeros", 0)]})
for name, theta, size, align in [("2d", f32([[[1.5, 0.25, -0.5], [0.1, 0.75, 0.3]]]), [1, 1, 2, 3], 0),
                                 ("2d_align_corners", f32([[[1.5, 0.25, -0.5], [0.1, 0.75, 0.3]]]), [1, 1, 3, 2], 1),
                                 ("3d", numbers([1, 3, 4], 422), [1, 1, 2, 2, 3], 0)]:
    case(f"affinegrid_{name}", "AffineGrid", 20, [theta, i64(size)], {"align_corners": align}, unasked=(ORT,),
         also={"torch": [torch_affine_grid(theta, size, align)]})


# RoiAlign, MaxRoiPool.
def bilinear(plane, y, x):
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    fy, fx = y - y0, x - x0
    return ((1 - fy) * ((1 - fx) * plane[y0, x0] + fx * plane[y0, x1]) + fy * ((1 - fx) * plane[y1, x0] + fx * plane[y1, x1]))


def roi_align(height, width, ratio, scale=1.0, half_pixel=False, boxes=None):
    boxes = BOXES if boxes is None else boxes
    out = np.empty([len(boxes), FEATURES.shape[1], height, width])
    for n, (x1, y1, x2, y2) in enumerate(boxes.astype(np.float64) * scale - (0.5 if half_pixel else 0)):
        size_h, size_w = (y2 - y1, x2 - x1) if half_pixel else (max(y2 - y1, 1), max(x2 - x1, 1))
        for (c, i, j) in np.ndindex(*out.shape[1:]):
            tall, wide = ratio or int(np.ceil(size_h / height)), ratio or int(np.ceil(size_w / width))
            samples = [bilinear(FEATURES[BATCH[n], c], y1 + (i + (a + 0.5) / tall) * size_h / height,
                                x1 + (j + (b + 0.5) / wide) * size_w / width) for a in range(tall) for b in range(wide)]
            out[n, c, i, j] = np.mean(samples) if samples else 0
    return [out.astype(np.float32)]


def max_roi_pool(rois, height, width, scale=1.0):
    out = np.zeros([len(rois), FEATURES.shape[1], height, width], np.float32)
    for n, (batch, *box) in enumerate(rois):
        x1, y1, x2, y2 = (int(np.floor(v * scale + 0.5)) for v in box)
        size_h, size_w = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i, j in np.ndindex(height, width):
            rows = slice(max(y1 + i * size_h // height, 0), max(y1 - (-(i + 1) * size_h // height), 0))
            columns = slice(max(x1 + j * size_w // width, 0), max(x1 - (-(j + 1) * size_w // width), 0))
            part = FEATURES[int(batch), :, rows, columns]
            out[n, :, i, j] = part.max((1, 2)) if part.size else 0
    return [out]


BOXES, BATCH = f32([[0, 0, 3, 2], [1, 0.5, 2.5, 2.5], [-1, -1, 0.5, 0.5]]), i64([0, 1, 0])
FEATURES = numbers([2, 2, 4, 5], 423)
ALIGN = "RoiAlign: the mean of bilinear samples at regular places of each bin"
case("roialign_10_default_size", "RoiAlign", 10, [FEATURES, BOXES, BATCH], {"sampling_ratio": 2}, roi_align(1, 1, 2), spec=ALIGN, unasked=(EVALUATOR,))
case("roialign_10_average", "RoiAlign", 10, [FEATURES, BOXES, BATCH], {"output_height": 2, "output_width": 3, "sampling_ratio": 2}, roi_align(2, 3, 2),
     spec=ALIGN, unasked=(EVALUATOR,))
case("roialign_10_adaptive_ratio", "RoiAlign", 10, [FEATURES, BOXES, BATCH], {"output_height": 2, "output_width": 1}, roi_align(2, 1, 0), spec=ALIGN,
     unasked=(EVALUATOR,))
case("roialign_16_half_pixel_scale", "RoiAlign", 16, [FEATURES, BOXES, BATCH], {"output_height": 2, "output_width": 2, "sampling_ratio": 1,
     "spatial_scale": 0.75}, roi_align(2, 2, 1, 0.75, True), spec=ALIGN + "; half_pixel takes half a pixel off", unasked=(EVALUATOR,))
INVERTED = f32([[3.5, 0, 0.5, 2], [3, 2, 1, 1], [0.5, 0, 3.5, 2]])
case("roialign_16_ends_before_it_begins", "RoiAlign", 16, [FEATURES, INVERTED, BATCH], {"output_height": 2, "output_width": 2},
     roi_align(2, 2, 0, 1.0, True, INVERTED), spec=ALIGN + "; a bin without places is 0", unasked=(EVALUATOR,))
case("roialign_22_output_half_pixel", "RoiAlign", 22, [FEATURES, BOXES, BATCH], {"output_height": 2, "output_width": 2, "sampling_ratio": 3,
     "coordinate_transformation_mode": "output_half_pixel"}, roi_align(2, 2, 3), spec=ALIGN, unasked=(EVALUATOR, ORT))
ROIS = f32([[0, 0, 0, 3, 2], [1, 1, 1, 4, 3], [0, 2, 2, 2, 2]])
case("maxroipool", "MaxRoiPool", 1, [FEATURES, ROIS], {"pooled_shape": [2, 2]}, max_roi_pool(ROIS, 2, 2),
     spec="MaxRoiPool: as in Fast R-CNN, bins from floor to ceil of their borders")
ROIS = f32([[0, 0, 0, 7, 5], [1, 3, 1, 9, 6]])
case("maxroipool_scaled", "MaxRoiPool", 22, [FEATURES, ROIS], {"pooled_shape": [2, 3], "spatial_scale": 0.5}, max_roi_pool(ROIS, 2, 3, 0.5),
     spec="MaxRoiPool: as in Fast R-CNN, bins from floor to ceil of their borders")
