# SPDX-License-Identifier: Apache-2.0
"""Cases of com.microsoft's operators of language models that no kernel of onnxruntime's on the CPU runs as their page has them, and of
its crops of images: formulas of ContribOperators.md in numpy."""
import math

import numpy as np

from .case import family, f16, f32, f64, i8, i32, i64, numbers, u8
from .formulas import bucket, sigmoid

family_case = family("language")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"


def case(name, op, inputs, attributes, outputs, kernel=False, **more):
    """`kernel`: onnxruntime has one on the CPU, and must agree."""
    family_case(f"ms_{name}", op, 1, inputs, attributes, outputs, domain="com.microsoft", spec=f"ContribOperators.md, {op}",
                unasked=(EVALUATOR,) if kernel else (EVALUATOR, ORT), **more)


def like(given, values):
    return np.asarray(values).astype(given.dtype)


def wide(*arrays):
    return [a.astype(np.float64) for a in arrays]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- Biases by position ----

def relative_bias(table, queries, keys, farthest, both):
    by_head = table.ravel().reshape(table.shape[::-1])  # the page: column-major
    buckets = [[bucket(key - query, table.shape[0], farthest, both) for key in range(keys)] for query in range(queries)]
    return by_head[:, buckets][None]


for name, both, queries, keys, dtype in (("both_ways", 1, 4, 11, "float32"), ("backwards", 0, 11, 6, "float32"), ("half", 1, 5, 5, "float16")):
    table = numbers([8, 3], 1001, dtype)
    case(f"relativepositionbias_{name}", "RelativePositionBias", [table, i64(queries), i64(keys)], {"max_distance": 9, "is_bidirectional": both},
         [relative_bias(table, queries, keys, 9, both)])


def gated_bias(query, bias, positions, weight, weight_bias, eco):
    query, bias, positions, weight, weight_bias, eco = wide(query, bias, positions, weight, weight_bias, eco)
    heads = eco.shape[1]
    batch, length, hidden = query.shape
    split = (query + bias).reshape(batch, length, heads, hidden // heads).transpose(0, 2, 1, 3)
    gates = sigmoid((split @ weight + weight_bias).reshape(batch, heads, length, 2, -1).sum(-1))
    return (gates[..., :1] * (gates[..., 1:] * eco - 1) + 2) * positions


for name, dims, dtype in (("one_for_all", [1, 2, 3, 3], "float32"), ("by_sample", [2, 2, 3, 3], "float32"), ("half", [1, 2, 3, 3], "float16")):
    given = [numbers(shape, 1010 + seed, dtype, 0.5)
             for seed, shape in enumerate(([2, 3, 8], [8], dims, [4, 6], [6], [1, 2, 1, 1]))]
    case(f"gatedrelativepositionbias_{name}", "GatedRelativePositionBias", given, {"num_heads": 2}, [like(given[0], gated_bias(*given))])


# ---- A decoder's step: two heads of two elements, one query a sample ----

def heads(x):
    return x.astype(np.float64).reshape(x.shape[0], x.shape[1], 2, -1).swapaxes(1, 2)


def attended(q, k, v, added=0.0, scale=None):
    weights = softmax(q @ k.swapaxes(2, 3) * (scale or 1 / math.sqrt(q.shape[3])) + added)
    return (weights @ v).swapaxes(1, 2).reshape(q.shape[0], q.shape[2], -1)


STEP = [numbers([2, 1, 4], 1020 + seed) for seed in range(3)]
PAST = [numbers([2, 2, 3, 2], 1023 + seed) for seed in range(2)]
FULL = [np.concatenate([past, heads(new)], 2) for past, new in zip(PAST, STEP[1:])]
MASK = i32([[1, 0, 1, 1], [0, 1, 1, 1]])
hidden = np.where(MASK[:, None, None] > 0, 0, -10000.0)
case("decodermaskedattention_mask", "DecoderMaskedMultiHeadAttention", [*STEP, MASK, None, *PAST], {"num_heads": 2},
     [like(STEP[0], r) for r in (attended(heads(STEP[0]), *FULL, hidden), *FULL)])
STEP_BIAS, SCORES = numbers([12], 1025), numbers([1, 2, 1, 4], 1026)
biased = [heads(x + part) for x, part in zip(STEP, np.split(STEP_BIAS, 3))]
joined = [np.concatenate([past, new], 2) for past, new in zip(PAST, biased[1:])]
case("decodermaskedattention_bias", "DecoderMaskedMultiHeadAttention", [*STEP, None, SCORES, *PAST, None, None, None, STEP_BIAS],
     {"num_heads": 2, "scale": 0.5}, [like(STEP[0], r) for r in (attended(biased[0], *joined, SCORES, 0.5), *joined)])
case("decodermaskedattention_cross", "DecoderMaskedMultiHeadAttention", [STEP[0], *PAST, i32([[1, 1, 0], [0, 1, 1]])],
     {"num_heads": 2, "mask_filter_value": -4.0},
     [like(STEP[0], attended(heads(STEP[0]), *wide(*PAST), np.where(np.array([[1, 1, 0], [0, 1, 1]])[:, None, None], 0, -4.0)))])


# ---- Quantized projections of one input ----

def blocks(n, k, bits, seed, dtype):
    """Packed numbers [n, blocks, bytes], scales [n, blocks], and the [n, k] that they stand for. Blocks of 16."""
    rng = np.random.default_rng(seed)
    count = -(-k // 16)
    values = rng.integers(0, 2 ** bits, (n, count, 16))
    per = 8 // bits
    packed = sum(values.reshape(n, count, -1, per)[..., j] << (bits * j) for j in range(per)).astype(np.uint8)
    scales = (rng.integers(1, 9, (n, count)) / 2 ** (bits + 1)).astype(dtype)
    return packed, scales, ((values - 2 ** (bits - 1)) * scales.astype(np.float64)[..., None]).reshape(n, -1)[:, :k]


def normalized(x, scale, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * scale.astype(np.float64)


FUNCTIONS = {"silu": lambda x: x * sigmoid(x), "swish": lambda x: x * sigmoid(x), "relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid,
             "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))}
for name, activation, bits, full, dtype in (("silu_norm", "silu", 4, True, "float32"), ("gelu_plain", "gelu", 8, False, "float32"),
                                            ("relu_half", "relu", 4, True, "float16")):
    a, skip, factor = numbers([2, 2, 20], 1030, dtype, 0.5), numbers([2, 2, 20], 1031, dtype, 0.5), numbers([20], 1032, dtype)
    gate, up = blocks(3, 20, bits, 1033, dtype), blocks(3, 20, bits, 1034, dtype)
    biases = [numbers([3], 1035, dtype), numbers([3], 1036, dtype)] if full else [None, None]
    seen = normalized(a.astype(np.float64) + skip, factor, 0.0625) if full else a.astype(np.float64)
    parts = [seen @ real.T + (0 if bias is None else bias.astype(np.float64)) for (_, _, real), bias in zip((gate, up), biases)]
    results = [like(a, FUNCTIONS[activation](parts[0]) * parts[1])] + ([like(a, a.astype(np.float64) + skip)] if full else [])
    case(f"matmulnbitsmlp_{name}", "MatMulNBitsMlp",
         [a, skip if full else None, factor if full else None, *gate[:2], biases[0], *up[:2], biases[1]],
         {"K": 20, "N": 3, "bits": bits, "block_size": 16, "activation": activation, "epsilon": 0.0625}, results)
for name, bits, full, dtype in (("skip", 4, True, "float32"), ("plain", 8, False, "float32"), ("half", 4, True, "float16")):
    a, skip, factor = numbers([1, 3, 20], 1040, dtype, 0.5), numbers([1, 3, 20], 1041, dtype, 0.5), numbers([20], 1042, dtype)
    weights = [blocks(n, 20, bits, 1043 + n, dtype) for n in (4, 2, 2)]
    biases = [numbers([n], 1050 + n, dtype) if full else None for n in (4, 2, 2)]
    total = a.astype(np.float64) + (skip if full else 0)
    seen = normalized(total, factor, 0.0625)
    results = [seen @ real.T + (0 if bias is None else bias.astype(np.float64)) for (_, _, real), bias in zip(weights, biases)]
    given = [x for (packed, scales, _), bias in zip(weights, biases) for x in (packed, scales, bias)]
    case(f"matmulnbitsqkv_{name}", "MatMulNBitsQkv", [a, skip if full else None, factor, *given],
         {"K": 20, "Nq": 4, "Nkv": 2, "bits": bits, "block_size": 16, "epsilon": 0.0625},
         [like(a, r) for r in results + ([total] if full else [])])


# ---- QEmbedLayerNormalization ----

def embedded(ids, kinds, tables, scales, zeros, epsilon):
    words, places, segments, gamma, beta = ((t.astype(np.float64) - z) * s for t, s, z in zip(tables, scales, zeros))
    x = words[ids] + places[: ids.shape[1]] + (0 if kinds is None else segments[kinds])
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * gamma + beta


IDS, KINDS = i32([[2, 0, 4], [1, 1, 3]]), i32([[0, 1, 1], [0, 0, 1]])
STEPS, ZEROS = [0.125, 0.0625, 0.25, 0.03125, 0.0078125], [120, 130, 125, 100, 128]
for name, make, shift, has_segments in (("uint8", u8, 0, True), ("int8", i8, -128, False)):
    rng = np.random.default_rng(1060)
    tables = [make(rng.integers(0, 256, dims) + shift) for dims in ([5, 8], [4, 8], [2, 8], [8], [8])]
    scales, zeros = [f32(s) for s in STEPS], [make(z + shift) for z in ZEROS]
    y = embedded(IDS, KINDS if has_segments else None, tables, STEPS, [z + shift for z in ZEROS], 0.0625)
    present = lambda values: [v if k != 2 or has_segments else None for k, v in enumerate(values)]
    case(f"qembedlayernormalization_{name}", "QEmbedLayerNormalization",
         [IDS, KINDS if has_segments else None, *present(tables), i32([[1, 1, 0], [1, 1, 1]]), *present(scales), *present(zeros)],
         {"epsilon": 0.0625}, [like(f32(0), y), i32([2, 3])], kernel=True)


# ---- CropAndResize: corners of boxes are parts of height - 1 and width - 1 ----

def crop(image, boxes, batches, size, mode, outside):
    y = np.full((len(boxes), image.shape[1], *size), outside, np.float64)
    for box, (top, left, bottom, right) in enumerate(boxes.astype(np.float64)):
        for row in range(size[0]):
            for column in range(size[1]):
                place = []
                for low, high, count, at, length in ((top, bottom, size[0], row, image.shape[2]), (left, right, size[1], column, image.shape[3])):
                    place.append((0.5 * (low + high) if count == 1 else low + at * (high - low) / (count - 1)) * (length - 1))
                if not (0 <= place[0] <= image.shape[2] - 1 and 0 <= place[1] <= image.shape[3] - 1):
                    continue
                channels = image[batches[box]].astype(np.float64)
                if mode == "nearest":
                    y[box, :, row, column] = channels[:, math.floor(place[0] + 0.5), math.floor(place[1] + 0.5)]
                    continue
                (i, down), (j, along) = ((int(p), p - int(p)) for p in place)
                below, after = min(i + 1, image.shape[2] - 1), min(j + 1, image.shape[3] - 1)
                y[box, :, row, column] = ((channels[:, i, j] * (1 - along) + channels[:, i, after] * along) * (1 - down)
                                          + (channels[:, below, j] * (1 - along) + channels[:, below, after] * along) * down)
    return y


# A box that is the image, one inside, one that reaches beyond, one upside down.
BOXES, OWNERS = [[0, 0, 1, 1], [0.125, 0.25, 0.8125, 0.875], [-0.25, 0.375, 0.625, 1.375], [0.6875, 0.8125, 0.1875, 0.0625]], i32([0, 1, 0, 1])
for mode in ("bilinear", "nearest"):
    for size in ([3, 4], [1, 2]):
        image, boxes = numbers([2, 3, 4, 6], 1070), f32(BOXES)
        case(f"cropandresize_{mode}_{size[0]}", "CropAndResize", [image, boxes, OWNERS, i32(size)], {"mode": mode, "extrapolation_value": 0.5},
             [like(image, crop(image, boxes, OWNERS, size, mode, 0.5))], kernel=True)
for name, make in (("half", f16), ("double", f64)):
    image, boxes = make(numbers([2, 3, 4, 6], 1070)), make(BOXES)
    case(f"cropandresize_{name}", "CropAndResize", [image, boxes, OWNERS, i32([3, 4])], {},
         [like(image, crop(image, boxes, OWNERS, [3, 4], "bilinear", 0.0))])


# ---- GroupQueryAttention: two heads of queries on one of keys and values ----

def rotated(x, cos, sin, rows):
    """`x`: [batch, heads, length, size], `rows`: [batch, length]."""
    half = x.shape[-1] // 2
    c, s = cos.astype(np.float64)[rows][:, None], sin.astype(np.float64)[rows][:, None]
    return np.concatenate([x[..., :half] * c - x[..., half:] * s, x[..., half:] * c + x[..., :half] * s], -1)


def group_attention(q, k, v, pasts, ends, rows=None, caches=None, bias=0.0, sink=None, dtype=np.float32):
    """[output, present_key, present_value, scores with mask] of samples whose sequences end at `ends`; the caches are as long as needed."""
    split = lambda x, count: wide(x)[0].reshape(x.shape[0], x.shape[1], count, -1).swapaxes(1, 2)
    queries, keys, values = split(q, 2), split(k, 1), split(v, 1)
    batch, length = q.shape[:2]
    capacity = max(ends)
    places = np.array([[end - length + i for i in range(length)] for end in ends])
    if caches:
        queries, keys = (rotated(x, *caches, places if rows is None else rows) for x in (queries, keys))
    presents = []
    for past, new in zip(pasts or (None, None), (keys, values)):
        present = np.zeros((batch, 1, capacity, new.shape[-1]))
        for sample, end in enumerate(ends):
            if past is not None:
                present[sample, :, : end - length] = past[sample, :, : end - length]
            present[sample, :, end - length : end] = new[sample]
        presents.append(present)
    scores = queries @ presents[0].swapaxes(2, 3) / math.sqrt(queries.shape[-1]) + bias
    hidden = np.arange(capacity) > places[:, None, :, None]
    scores = np.where(hidden, -np.inf, scores)
    joint = scores if sink is None else np.concatenate([scores, np.broadcast_to(np.reshape(sink, (1, 2, 1, 1)), scores.shape[:3] + (1,))], -1)
    y = softmax(joint)[..., :capacity] @ presents[1]
    y = y.swapaxes(1, 2).reshape(batch, length, -1)
    return [r.astype(dtype) for r in (y, *presents, np.where(hidden, 0, scores))]


GROUP = {"num_heads": 2, "kv_num_heads": 1}
for name, dtype in (("float", "float32"), ("half", "float16")):
    gq, gk, gv = numbers([2, 1, 8], 1080, dtype), numbers([2, 1, 4], 1081, dtype), numbers([2, 1, 4], 1082, dtype)
    past = [numbers([2, 1, 4, 4], 1083 + seed, dtype) for seed in range(2)]
    y = group_attention(gq, gk, gv, past, [4, 2], dtype=past[0].dtype)
    case(f"groupqueryattention_step_{name}", "GroupQueryAttention", [gq, gk, gv, *past, i32([3, 1]), i32(4)], GROUP, y[:3])
GQ, GK, GV = numbers([2, 3, 8], 1085), numbers([2, 3, 4], 1086), numbers([2, 3, 4], 1087)
ANGLES = np.outer(np.arange(6), 0.25 ** np.arange(2)).astype(np.float32)
CACHES = [np.cos(ANGLES), np.sin(ANGLES)]
PLACES = i64([[2, 0, 5], [1, 3, 4]])
case("groupqueryattention_position_ids", "GroupQueryAttention", [GQ, GK, GV, None, None, i32([2, 2]), i32(3), *CACHES, PLACES], GROUP | {"do_rotary": 1},
     group_attention(GQ, GK, GV, None, [3, 3], PLACES, CACHES)[:3])
BIAS, SINKS = numbers([1, 2, 3, 3], 1088), numbers([2], 1089)
case("groupqueryattention_bias", "GroupQueryAttention", [GQ, GK, GV, None, None, i32([2, 2]), i32(3), None, None, None, BIAS], GROUP,
     group_attention(GQ, GK, GV, None, [3, 3], bias=BIAS)[:3])
case("groupqueryattention_sink", "GroupQueryAttention",
     [GQ, GK, GV, None, None, i32([2, 2]), i32(3), None, None, None, None, SINKS], GROUP,
     group_attention(GQ, GK, GV, None, [3, 3], sink=SINKS)[:3])
case("groupqueryattention_packed", "GroupQueryAttention", [np.concatenate([GQ, GK, GV], -1), None, None, None, None, i32([2, 2]), i32(3)],
     GROUP | {"smooth_softmax": 1, "qk_output": 1}, group_attention(GQ, GK, GV, None, [3, 3], sink=[0, 0]))
