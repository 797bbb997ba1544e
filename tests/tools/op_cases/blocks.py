# SPDX-License-Identifier: Apache-2.0
"""Cases of com.microsoft whose results take several blocks of a GPU's threads, the last of them in part: formulas of ContribOperators.md
in numpy."""
import math

import ml_dtypes
import numpy as np

from .case import bf16, f16, f32, family, i32, i64, numbers, u8
from .formulas import sigmoid

family_case = family("blocks")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"


def case(name, op, inputs, attributes, outputs, kernel=True, **more):
    """`kernel`: onnxruntime has one on the CPU, and must agree."""
    family_case(f"ms_{name}_blocks", op, 1, inputs, attributes, outputs, domain="com.microsoft", spec=f"ContribOperators.md, {op}",
                unasked=(EVALUATOR,) if kernel else (EVALUATOR, ORT), **more)


def like(given, values):
    return np.asarray(values).astype(given.dtype)


# ---- Whole tensors ----

A, B = numbers([15, 7], 1201), numbers([14, 7], 1202)
A[3], B[5] = np.arange(7) / 4, np.arange(7) / 4  # a pair without a distance
A[2, 4] = B[3, 4] = 0
x, y = A.astype(np.float64)[:, None], B.astype(np.float64)[None]
cosine = lambda x, y: 1 - (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
centered = lambda v: v - v.mean(-1, keepdims=True)
with np.errstate(invalid="ignore"):
    shares = np.nan_to_num(np.abs(x - y) / (np.abs(x) + np.abs(y)))
DISTANCES = {
    "braycurtis": np.abs(x - y).sum(-1) / np.abs(x + y).sum(-1), "canberra": shares.sum(-1), "chebyshev": np.abs(x - y).max(-1),
    "cityblock": np.abs(x - y).sum(-1), "correlation": cosine(centered(x), centered(y)), "cosine": cosine(x, y),
    "euclidean": np.sqrt(((x - y) ** 2).sum(-1)), "hamming": (x != y).mean(-1), "sqeuclidean": ((x - y) ** 2).sum(-1),
}
for metric, expected in DISTANCES.items():
    case(f"cdist_{metric}", "CDist", [A, B], {"metric": metric}, [like(A, expected)], kernel="euclidean" in metric)  # onnxruntime knows two
complex_of = lambda v: v[..., 0].astype(np.float64) + 1j * v[..., 1]
parts = lambda z: np.stack([z.real, z.imag], -1)
for name, dtype in (("float", "float32"), ("half", "float16")):
    left, right = numbers([7, 1, 3, 2], 1203, dtype), numbers([5, 1, 2], 1204, dtype)
    case(f"complexmul_{name}", "ComplexMul", [left, right], None, [like(left, parts(complex_of(left) * complex_of(right)))], kernel=False)
    case(f"complexmulconj_{name}", "ComplexMulConj", [right, left], None, [like(left, parts(complex_of(right) * complex_of(left).conj()))],
         kernel=False)
SPECTRUM = numbers([3, 36, 2], 1205)  # what is imaginary at 0 and in the middle does not count
case("irfft", "Irfft", [SPECTRUM], {"signal_ndim": 1}, [like(SPECTRUM, np.fft.irfft(complex_of(SPECTRUM), 70))], kernel=False)
SQUARES = (numbers([5, 7, 7], 1206) + 6 * np.eye(7, dtype=np.float32))[:, [2, 0, 1, 6, 3, 5, 4]].copy()  # pivots stand elsewhere
case("inverse", "Inverse", [SQUARES], None, [like(SQUARES, np.linalg.inv(SQUARES.astype(np.float64)))])

# ---- Sequences ----

TOKENS, SCORES = i64(np.random.default_rng(1207).integers(0, 7, (3, 72))), numbers([3, 9], 1208)
for n in (1, 2, 4, 80):
    blocked = SCORES.copy()
    for row, scores in zip(TOKENS.tolist(), blocked):
        for begin in range(len(row) - n + 1):
            if row[begin: begin + n - 1] == row[len(row) - n + 1:]:
                scores[row[begin + n - 1]] = -np.inf
    case(f"ngramrepeatblock_{n}", "NGramRepeatBlock", [TOKENS, SCORES], {"ngram_size": n}, [blocked])

# ---- Weights of 4 bits ----

FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3, 0, -0.0625, -8, -12, -4, -6, -2, -3]) / 12
NF4 = np.array([-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1])
n, k, block = 13, 35, 16  # the last byte and the last block in part
CODES = np.random.default_rng(1209).integers(0, 16, n * k)
PACKED = u8(np.pad(CODES, (0, 1))[0::2] << 4 | np.pad(CODES, (0, 1))[1::2])
for name, kind, values, rows, dtype, transposed in (("fp4_few_rows", 0, FP4, 3, "float32", 1), ("nf4_many_rows", 1, NF4, 17, "float32", 1),
                                                    ("nf4_half", 1, NF4, 3, "float16", 1), ("fp4_columns", 0, FP4, 3, "float32", 0),
                                                    ("nf4_many_rows_columns", 1, NF4, 17, "float32", 0)):
    scales = np.abs(numbers([-(-n * k // block)], 1210, dtype)) + like(numbers([1], 1, dtype), 0.25)
    weights = (values[CODES] * np.repeat(scales.astype(np.float64), block)[: n * k]).reshape(n, k)
    weights = weights.T if transposed else weights
    a = numbers([rows, weights.shape[0]], 1211, dtype)
    attributes = {"N": n, "K": k, "block_size": block, "quant_type": kind, "transB": transposed}
    case(f"matmulbnb4_{name}", "MatMulBnb4", [a, PACKED, scales], attributes, [like(a, a.astype(np.float64) @ weights)],
         kernel=dtype == "float32" and transposed)

# ---- Experts: the third of five is chosen by no token ----

tokens, hidden, inner, count = 27, 9, 11, 5


def experts(dtype):
    x, router = numbers([tokens, hidden], 1212, dtype), numbers([tokens, count], 1213, dtype)
    router += like(router, np.arange(count) / 256)  # no two of a token are equal: the page leaves open who is first
    router[:, 2] = -8
    layers = [numbers(dims, 1214 + seed, dtype, 0.25)
              for seed, dims in enumerate(([count, inner, hidden], [count, hidden, inner], [count, inner, hidden], [count, 2 * inner, hidden]))]
    biases = [numbers(dims, 1220 + seed, dtype, 0.5) for seed, dims in enumerate(([count, inner], [count, hidden], [count, inner], [count, 2 * inner]))]
    return x, router, layers, biases


def mixture(x, router, chosen, normalize, answer):
    """The answers of the `chosen` best experts of each token, the first of equals, weighted by the router's softmax."""
    p = np.exp(router.astype(np.float64))
    p /= p.sum(-1, keepdims=True)
    result = np.zeros((tokens, hidden))
    for token, row in enumerate(router.astype(np.float64)):
        best = np.argsort(-row, kind="stable")[:chosen]
        for e in best:
            result[token] += p[token, e] / (p[token, best].sum() if normalize else 1) * answer(e, x[token].astype(np.float64))
    return result


gelu = lambda v: 0.5 * v * (1 + np.vectorize(math.erf)(v / math.sqrt(2)))
FUNCTIONS = {"relu": lambda v: np.maximum(v, 0), "silu": lambda v: v * sigmoid(v), "gelu": gelu, "identity": lambda v: v}
for name, chosen, normalize, dtype in (("relu", 1, 0, "float32"), ("silu", 2, 1, "float32"), ("gelu", 3, 0, "float32"), ("identity", 2, 1, "float16")):
    x, router, (w1, w2, w3, _), (b1, b2, b3, _) = experts(dtype)
    wide = [v.astype(np.float64) for v in (w1, w2, b1, b2)]
    answer = lambda e, v: wide[1][e] @ FUNCTIONS[name](wide[0][e] @ v + wide[2][e]) + wide[3][e]
    case(f"moe_{name}", "MoE", [x, router, w1, b1, w2, b2], {"k": chosen, "normalize_routing_weights": normalize, "activation_type": name},
         [like(x, mixture(x, router, chosen, normalize, answer))],
         wrong={ORT: "takes the approximation by tanh"} if name == "gelu" else {})


def swiglu(g, l):
    g, l = np.minimum(g, 0.75), np.clip(l, -0.75, 0.75)
    return g * sigmoid(1.5 * g) * (l + 0.5)


x, router, (w1, w2, w3, fused), (b1, b2, b3, fused_bias) = experts("float32")
SWIGLU = {"k": 2, "activation_type": "swiglu", "activation_alpha": 1.5, "activation_beta": 0.5, "swiglu_limit": 0.75}
plain = lambda e, v: w2[e].astype(np.float64) @ swiglu(w1[e] @ v + b1[e], w3[e] @ v + b3[e]) + b2[e]
case("moe_swiglu", "MoE", [x, router, w1, b1, w2, b2, w3, b3], SWIGLU, [like(x, mixture(x, router, 2, False, plain))], kernel=False)
for fusion, cut in ((1, lambda v: (v[0::2], v[1::2])), (2, lambda v: np.split(v, 2))):
    halves = lambda e, v: w2[e].astype(np.float64) @ swiglu(*cut(fused[e] @ v + fused_bias[e]))
    case(f"moe_swiglu_fusion_{fusion}", "MoE", [x.reshape(3, 9, hidden), router, fused, fused_bias, w2], SWIGLU | {"swiglu_fusion": fusion},
         [like(x, mixture(x, router, 2, False, halves)).reshape(3, 9, hidden)], kernel=fusion == 1)

# ---- GroupQueryAttention's quantized caches: one token after a past of five and three, in a cache of seven ----

heads, shared, size, cached, pasts = 4, 2, 8, 7, (5, 3)


def held(units, kind):
    """Numbers in units of their scale, as the cache holds them."""
    if kind == "float8":
        return np.clip(units, -448, 448).astype(np.float32).astype(ml_dtypes.float8_e4m3fn).astype(np.float64)
    limit = 7 if kind == "nibbles" else 127
    return np.clip(np.rint(units), -limit - 1, limit)


def codes(units, kind):
    if kind == "float8":
        return units.astype(ml_dtypes.float8_e4m3fn)
    if kind == "bytes":
        return units.astype(np.int8)
    return u8(units[..., 0::2] + 8 + 16 * (units[..., 1::2] + 8))


def quantized_step(kind, mode):
    rng = np.random.default_rng(1230)
    q, *new = numbers([2, 1, heads * size], 1231), numbers([2, 1, shared * size], 1232), numbers([2, 1, shared * size], 1233)
    span = {"bytes": 0.03, "nibbles": 0.4, "float8": 0.004}[kind]  # some new numbers are beyond what the cache can hold
    scales = [f32(np.round(span * rng.uniform(0.5, 1.5, (1,) if mode == "PER_TENSOR" else (1, shared, 1, size)), 5)) for _ in range(2)]
    past, present, seen = [], [], []
    for fresh, scale in zip(new, scales):
        units = held(rng.uniform(-9 if kind == "nibbles" else -150, 9 if kind == "nibbles" else 150, (2, shared, cached, size)), kind)
        after = np.zeros_like(units)
        added = held((fresh.reshape(2, shared, 1, size) / np.reshape(scale, (1, 1, 1, 1) if scale.size == 1 else scale.shape)).astype(np.float64), kind)
        for sample, rows in enumerate(pasts):
            after[sample, :, :rows] = units[sample, :, :rows]
            after[sample, :, rows] = added[sample, :, 0]
        past.append(codes(units, kind))
        present.append(codes(after, kind))
        seen.append(np.repeat(after * scale.astype(np.float64).reshape((1, 1, 1, 1) if scale.size == 1 else scale.shape), heads // shared, 1))
    scores = q.astype(np.float64).reshape(2, heads, 1, size) @ seen[0].swapaxes(2, 3) / math.sqrt(size)
    shown = np.where(np.arange(cached) <= np.array(pasts)[:, None, None, None], scores, -np.inf)
    weights = np.exp(shown - shown.max(-1, keepdims=True))
    y = (weights / weights.sum(-1, keepdims=True) @ seen[1]).reshape(2, 1, heads * size)
    inputs = [q, *new, *past, i32(pasts), i32(cached), *[None] * 5, *scales]
    attributes = {"num_heads": heads, "kv_num_heads": shared, "k_quant_type": mode, "v_quant_type": mode}
    if kind != "float8":
        attributes["kv_cache_bit_width"] = 4 if kind == "nibbles" else 8
    case(f"groupqueryattention_{kind}_{mode.lower()}", "GroupQueryAttention", inputs, attributes, [like(q, y), *present], kernel=kind != "float8",
         wrong={ORT: "leaves bytes of 0 after a sample's last row, which are numbers of -8"} if kind == "nibbles" else {},
         not_double="a cache of floats is carried as double as well" if kind == "float8" else "")


for kind in ("bytes", "nibbles", "float8"):
    for mode in ("PER_TENSOR", "PER_CHANNEL"):
        quantized_step(kind, mode)
