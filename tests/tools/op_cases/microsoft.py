# SPDX-License-Identifier: Apache-2.0
"""Cases of com.microsoft. Of the peers only onnxruntime knows these operators; the second source is the page's formula."""
import math

import numpy as np

from .case import f32, family, i4, i8, i32, i64, numbers, text, u4, u8

case_in = family("microsoft")
EVALUATOR, ORT = "ReferenceEvaluator", "onnxruntime"


def case(name, op, inputs, attributes=None, formula=None, kernel=True, **more):
    """`formula`: the outputs by the operator's page (ContribOperators.md); `kernel`: onnxruntime has one on the CPU."""
    results = [np.asarray(value, more.pop("dtype", None) or inputs[0].dtype) if not isinstance(value, tuple) else np.asarray(*value)
               for value in formula]
    outputs = None if kernel else results
    source = {"also": {"the page's formula": results}} if kernel else {"spec": f"ContribOperators.md, com.microsoft.{op}"}
    case_in(f"ms_{name}", op, 1, inputs, attributes, outputs, domain="com.microsoft", count=more.pop("count", len(results)),
            unasked=(EVALUATOR,) if kernel else (EVALUATOR, ORT), **source, **more)


def wide(*arrays):
    return [a.astype(np.float64) for a in arrays]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


X, BIAS = numbers([2, 3, 4], 901), numbers([4], 902)
x, bias = wide(X, BIAS)
case("gelu", "Gelu", [X], formula=[gelu(x)])
case("biasgelu", "BiasGelu", [X, BIAS], formula=[gelu(x + bias)])
case("fastgelu", "FastGelu", [X], formula=[fast_gelu(x)])
case("fastgelu_bias", "FastGelu", [X, BIAS], formula=[fast_gelu(x + bias)])
case("quickgelu", "QuickGelu", [X], {"alpha": 0.75}, formula=[x * sigmoid(0.75 * x)])
case("biassplitgelu", "BiasSplitGelu", [X, BIAS], formula=[(x + bias)[..., :2] * gelu((x + bias)[..., 2:])], kernel=False)
case("biasadd", "BiasAdd", [X, BIAS, X * 2], formula=[3 * x + bias], kernel=False)
case("biassoftmax_inner", "BiasSoftmax", [X, numbers([2, 1, 4], 903)], {"axis": 2, "is_inner_broadcast": 1},
     formula=[softmax(x + numbers([2, 1, 4], 903))], kernel=False)
case("biassoftmax_outer", "BiasSoftmax", [X, numbers([3, 4], 904)], {"axis": 2, "is_inner_broadcast": 0},
     formula=[softmax(x + numbers([3, 4], 904))], kernel=False)

# Products.
A, B = numbers([2, 3, 4], 905), numbers([2, 5, 3], 906)
a, b = wide(A, B)
case("fusedmatmul", "FusedMatMul", [A, B], {"transA": 1, "transB": 1, "alpha": 0.25}, formula=[0.25 * a.swapaxes(1, 2) @ b.swapaxes(1, 2)])
case("fusedmatmul_batch", "FusedMatMul", [numbers([3, 2, 4], 907), numbers([2, 4, 5], 908)], {"transBatchA": 1},
     formula=[wide(numbers([3, 2, 4], 907))[0].transpose(1, 0, 2) @ numbers([2, 4, 5], 908)])
G, W, C = numbers([3, 4], 909), numbers([4, 2], 910), numbers([3, 1], 911)
g, w, c = wide(G, W, C)
case("fusedgemm_leakyrelu", "FusedGemm", [G, W, C], {"activation": "LeakyRelu", "activation_alpha": 0.25, "alpha": 0.5, "beta": 2.0},
     formula=[np.where((y := 0.5 * g @ w + 2 * c) < 0, 0.25 * y, y)])
case("fusedmatmulactivation", "FusedMatMulActivation", [G, W], {"activation": "Tanh"}, formula=[np.tanh(g @ w)], kernel=False)
case("gemmfastgelu", "GemmFastGelu", [G, W, numbers([2], 912)], formula=[fast_gelu(g @ w + numbers([2], 912))], kernel=False)

# Convolutions of one kernel element are products of channels; the padding stays visible in the shape.
IMAGE, KERNEL = numbers([1, 2, 3, 3], 913), numbers([3, 2, 1, 1], 914)
image = np.pad(wide(IMAGE)[0], ((0, 0), (0, 0), (1, 0), (0, 1)))
convolved = np.einsum("nchw,kc->nkhw", image, wide(KERNEL)[0][:, :, 0, 0]) + 0.5
CONV_BIAS = np.full(3, 0.5, np.float32)
case("fusedconv_sum", "FusedConv", [IMAGE, KERNEL, CONV_BIAS, numbers([1, 3, 4, 4], 915)], {"pads": [1, 0, 0, 1], "activation": "Relu"},
     formula=[np.maximum(0, convolved + numbers([1, 3, 4, 4], 915))])
case("fusedconv_hardsigmoid", "FusedConv", [IMAGE, KERNEL, CONV_BIAS], {"pads": [1, 0, 0, 1], "activation": "HardSigmoid",
     "activation_params": [0.25, 0.375]}, formula=[np.clip(0.25 * convolved + 0.375, 0, 1)])
case("nhwcconv", "NhwcConv", [np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1)), KERNEL, CONV_BIAS], {"pads": [1, 0, 0, 1]},
     formula=[convolved.transpose(0, 2, 3, 1)], kernel=False)

# Normalizations.
SKIP, GAMMA, BETA = numbers([1, 3, 4], 916), numbers([4], 917), numbers([4], 918)


def normalized(v, center=True, epsilon=0.0625):
    v = v - v.mean(-1, keepdims=True) * center
    return v / np.sqrt((v * v).mean(-1, keepdims=True) + epsilon)


total = x + SKIP + bias
case("skiplayernormalization", "SkipLayerNormalization", [X, SKIP, GAMMA, BETA, BIAS], {"epsilon": 0.0625}, count="1__1",
     formula=[normalized(total) * GAMMA + BETA, total])
case("skipsimplifiedlayernormalization", "SkipSimplifiedLayerNormalization", [X, SKIP, GAMMA, BIAS], {"epsilon": 0.0625}, count="1__1",
     formula=[normalized(total, False) * GAMMA, total])
IDS, KINDS = i32([[2, 0, 1], [1, 1, 2]]), i32([[0, 1, 1], [0, 0, 1]])
WORDS, PLACES, SEGMENTS = numbers([3, 4], 919), numbers([5, 4], 920), numbers([2, 4], 921)
embedded = WORDS[IDS].astype(np.float64) + PLACES[[0, 1, 2]] + SEGMENTS[KINDS]
case("embedlayernormalization", "EmbedLayerNormalization", [IDS, KINDS, WORDS, PLACES, SEGMENTS, GAMMA, BETA, i32([[1, 1, 0], [1, 1, 1]])],
     {"epsilon": 0.0625}, formula=[(normalized(embedded) * GAMMA + BETA, np.float32), ([2, 3], np.int32), (embedded, np.float32)])
PICTURE = numbers([2, 2, 1, 4], 922)
by_group = normalized(wide(PICTURE)[0].reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(2, 2, 4)).reshape(2, 2, 2, 2)
grouped = by_group.transpose(0, 2, 1, 3).reshape(2, 2, 1, 4) * GAMMA + BETA
case("groupnorm_silu", "GroupNorm", [PICTURE, GAMMA, BETA], {"groups": 2, "activation": 1, "epsilon": 0.0625},
     formula=[grouped * sigmoid(grouped)], kernel=False)

# Attention: two heads of two elements.


def heads(v):
    return v.reshape(v.shape[0], v.shape[1], 2, -1).transpose(0, 2, 1, 3).astype(np.float64)


def joined(v):
    return v.transpose(0, 2, 1, 3).reshape(v.shape[0], v.shape[2], -1)


def attended(q, k, v, bias=0.0, scale=None):
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return joined(softmax(q @ k.swapaxes(2, 3) * scale + bias) @ v)


Q, K, V = numbers([2, 3, 4], 923), numbers([2, 4, 4], 924), numbers([2, 4, 4], 925)
MASK = i32([[1, 1, 0, 1], [0, 1, 1, 1]])
hidden = np.where(MASK[:, None, None] > 0, 0, -10000.0)
case("multiheadattention_mask", "MultiHeadAttention", [Q, K, V, None, MASK], {"num_heads": 2}, formula=[attended(heads(Q), heads(K), heads(V), hidden)])
SCORES = numbers([1, 2, 3, 4], 926)
case("multiheadattention_bias", "MultiHeadAttention", [Q, K, V, numbers([12], 927), None, SCORES], {"num_heads": 2, "scale": 0.25},
     formula=[attended(*(heads(t + part) for t, part in zip((Q, K, V), np.split(numbers([12], 927), 3))), SCORES, 0.25)])
PAST_K, PAST_V = numbers([2, 2, 2, 2], 928), numbers([2, 2, 2, 2], 929)
NEW_K, NEW_V = numbers([2, 3, 4], 930), numbers([2, 3, 4], 931)
keys, values = (np.concatenate([past, heads(new)], 2) for past, new in ((PAST_K, NEW_K), (PAST_V, NEW_V)))
later = np.triu(np.full((3, 5), -np.inf), 3)
case("multiheadattention_past", "MultiHeadAttention", [Q, NEW_K, NEW_V, None, None, None, PAST_K, PAST_V], {"num_heads": 2, "unidirectional": 1},
     formula=[attended(heads(Q), keys, values, later), keys, values])
PROJECTION, PROJECTION_BIAS = numbers([4, 12], 932, scale=0.5), numbers([12], 933)
projected = np.split(wide(Q)[0] @ PROJECTION + PROJECTION_BIAS, 3, axis=-1)
short = np.where(np.arange(3) < np.array([[3], [2]]), 0, -10000.0)[:, None, None]
case("attention_lengths", "Attention", [Q, PROJECTION, PROJECTION_BIAS, i32([3, 2])], {"num_heads": 2}, formula=[attended(*map(heads, projected), short)])
case("attention_unidirectional", "Attention", [Q, PROJECTION, PROJECTION_BIAS], {"num_heads": 2, "unidirectional": 1},
     formula=[attended(*map(heads, projected), np.triu(np.full((3, 3), -np.inf), 1))])

def caches(pairs):
    angles = np.outer(np.arange(6), 0.25 ** np.arange(pairs)).astype(np.float32)
    return np.cos(angles), np.sin(angles)


COS, SIN = caches(2)


def rotated(block, rows, interleaved=False):
    """`block`: [batch, heads, sequence, size]; `rows`: [batch, sequence]."""
    pairs = block.shape[-1] // 2
    cos, sin = (cache[rows][:, None].astype(np.float64) for cache in caches(pairs))
    first, second = (block[..., 0::2], block[..., 1::2]) if interleaved else (block[..., :pairs], block[..., pairs:])
    parts = [first * cos - second * sin, second * cos + first * sin]
    return np.stack(parts, -1).reshape(block.shape) if interleaved else np.concatenate(parts, -1)


TOKENS = numbers([2, 2, 3, 4], 934)
WHERE = i64([[0, 4, 2], [5, 1, 3]])
for interleaved in (0, 1):
    case(f"rotaryembedding_interleaved_{interleaved}", "RotaryEmbedding", [TOKENS, WHERE, COS, SIN], {"interleaved": interleaved},
         formula=[rotated(wide(TOKENS)[0], WHERE, bool(interleaved))])
case("rotaryembedding_offset", "RotaryEmbedding", [TOKENS, i64([2]), COS, SIN], formula=[rotated(wide(TOKENS)[0], np.array([[2, 3, 4]] * 2))])

# Two query heads of eight elements share one head of keys and values.
GQ, GK, GV = numbers([2, 3, 16], 935), numbers([2, 3, 8], 936), numbers([2, 3, 8], 937)
COUNTS = {"num_heads": 2, "kv_num_heads": 1}
one_head = lambda t: t[:, None].astype(np.float64)
causal = np.triu(np.full((3, 3), -np.inf), 1)
places = np.array([[0, 1, 2]] * 2)
case("groupqueryattention_prompt", "GroupQueryAttention", [GQ, GK, GV, None, None, i32([2, 2]), i32(3), *caches(4)], {**COUNTS, "do_rotary": 1},
     formula=[attended(rotated(heads(GQ), places), rotated(one_head(GK), places), one_head(GV), causal), rotated(one_head(GK), places), one_head(GV)],
     kernel=False)  # onnxruntime turns heads of 16 elements and their multiples alone
capped = lambda q, k: 1.5 * np.tanh(q @ k.swapaxes(2, 3) / math.sqrt(8) / 1.5)
window = np.where(np.arange(3)[:, None] - np.arange(3) < 2, 0, -np.inf)
case("groupqueryattention_window_softcap", "GroupQueryAttention", [GQ, GK, GV, None, None, i32([2, 2]), i32(3)],
     {**COUNTS, "local_window_size": 2, "softcap": 1.5}, formula=[joined(softmax(capped(heads(GQ), one_head(GK)) + causal + window) @ one_head(GV)),
                                                                  one_head(GK), one_head(GV)])
CACHE_K, CACHE_V = numbers([2, 1, 4, 8], 938), numbers([2, 1, 4, 8], 939)
full = []
for cache, new in ((CACHE_K, GK), (CACHE_V, GV)):
    after = np.zeros((2, 1, 4, 8))
    for sample, rows in enumerate((3, 1)):
        after[sample, 0, : rows + 1] = np.concatenate([cache[sample, 0, :rows], new[sample, :1]])
    full.append(after)
seen = np.where(np.arange(4) < np.array([[4], [2]]), 0, -np.inf)[:, None, None]
case("groupqueryattention_step", "GroupQueryAttention", [GQ[:, :1].copy(), GK[:, :1].copy(), GV[:, :1].copy(), CACHE_K, CACHE_V, i32([3, 1]), i32(4)],
     COUNTS, formula=[attended(heads(GQ[:, :1]), full[0], full[1], seen), *full])

# Quantized products.
NIBBLES = u8(np.random.default_rng(940).integers(0, 256, (3, 2, 8)))
STEPS = f32([[0.25, 0.5], [1, 0.125], [0.5, 0.75]])
unpacked = np.stack([NIBBLES & 15, NIBBLES >> 4], -1).reshape(3, 2, 16).astype(np.float64)
INPUT = numbers([2, 20], 941)
for name, more, zeros in (("", [], np.full((3, 2), 8)), ("_zero_points", [u8([[0x3a], [0x75], [0xf0]])], np.array([[10, 3], [5, 7], [0, 15]]))):
    weights = ((unpacked - zeros[..., None]) * STEPS[..., None]).reshape(3, 32)[:, :20]
    case(f"matmulnbits{name}", "MatMulNBits", [INPUT, NIBBLES, STEPS, *more], {"K": 20, "N": 3, "bits": 4, "block_size": 16},
         formula=[wide(INPUT)[0] @ weights.T])
QA, QB = u8([[10, 250, 128], [0, 77, 200]]), i8([[5, -7], [-128, 127], [33, 1]])
real = (QA.astype(np.float64) - 120) * 0.25 @ ((QB - np.array([3.0, -4])) * [0.5, 2])
case("matmulintegertofloat", "MatMulIntegerToFloat", [QA, QB, f32(0.25), f32([0.5, 2]), u8(120), i8([3, -4]), f32([1, -1])],
     formula=[(real + [1, -1], np.float32)])

# 8-bit operators: scales are powers of two, so that no tie can fall to either side by rounding.
P, R = u8([[0, 255, 130], [7, 128, 90]]), u8([200, 3, 129])
p, r = (P - 128.0) * 0.25, (R - 130.0) * 0.5
quantized = lambda v, step, zero: (np.clip(np.rint(v / step) + zero, 0, 255), np.uint8)
case("qlinearadd", "QLinearAdd", [P, f32(0.25), u8(128), R, f32(0.5), u8(130), f32(0.5), u8(100)], formula=[quantized(p + r, 0.5, 100)])
case("qlinearmul", "QLinearMul", [P, f32(0.25), u8(128), R, f32(0.5), u8(130), f32(4), u8(100)], formula=[quantized(p * r, 4, 100)])
case("qlinearleakyrelu", "QLinearLeakyRelu", [P, f32(0.25), u8(128), f32(0.25), u8(50)], {"alpha": 0.25},
     formula=[quantized(np.where(p < 0, p / 4, p), 0.25, 50)])
case("qlinearsigmoid", "QLinearSigmoid", [P, f32(0.25), u8(128), f32(1 / 256), u8(0)], formula=[quantized(sigmoid(p), 1 / 256, 0)])
case("qlinearconcat", "QLinearConcat", [f32(0.5), u8(10), P, f32(0.25), u8(128), P[:, :1].copy(), f32(1), u8(3)], {"axis": 1},
     formula=[quantized(np.concatenate([p, P[:, :1] - 3.0], 1), 0.5, 10)])
case("qlinearglobalaveragepool_last", "QLinearGlobalAveragePool", [P.reshape(1, 2, 1, 3), f32(0.25), u8(128), f32(0.125), u8(128)],
     {"channels_last": 1}, formula=[quantized(p.mean(0).reshape(1, 1, 1, 3), 0.125, 128)])

# Whole tensors.
case("cdist_euclidean", "CDist", [numbers([3, 4], 942), numbers([2, 4], 943)], {"metric": "euclidean"},
     formula=[np.sqrt(((wide(numbers([3, 4], 942))[0][:, None] - numbers([2, 4], 943)) ** 2).sum(-1))])
SQUARE = f32([[[2, 1], [1, 1]], [[0, 2], [4, 1]]])
case("inverse", "Inverse", [SQUARE], formula=[np.linalg.inv(wide(SQUARE)[0])])
SIGNAL = numbers([2, 6], 944)
spectrum = np.fft.rfft(wide(SIGNAL)[0])
parts = np.stack([spectrum.real, spectrum.imag], -1)
case("rfft", "Rfft", [SIGNAL], {"signal_ndim": 1}, formula=[parts], kernel=False)
case("irfft", "Irfft", [parts.astype(np.float32)], {"signal_ndim": 1}, formula=[SIGNAL], kernel=False)
case("unique", "Unique", [f32([2, 1, 1, 3, 4, 3])], formula=[[2, 1, 3, 4], ([0, 1, 1, 2, 3, 2], np.int64), ([1, 2, 2, 1], np.int64)])

# Tables, experts, gates.
TABLE, TABLE_STEPS = u8(np.random.default_rng(945).integers(0, 256, (3, 8))), f32([[0.25], [0.5], [2]])
nibbles = np.stack([TABLE & 15, TABLE >> 4], -1).reshape(3, 16).astype(np.float64)
case("gatherblockquantized", "GatherBlockQuantized", [TABLE, i64([[2, 0], [-2, 2]]), TABLE_STEPS], {"block_size": 16},
     formula=[(((nibbles - 8) * TABLE_STEPS)[[[2, 0], [1, 2]]], np.float32)])
case("gatherblockquantized_uint4", "GatherBlockQuantized", [u4(nibbles), i64([2, -1, 0]), TABLE_STEPS, u4([[3], [8], [15]])], {"block_size": 16},
     formula=[(((nibbles - [[3], [8], [15]]) * TABLE_STEPS)[[2, 2, 0]], np.float32)])
signed, steps = np.random.default_rng(953).integers(-8, 8, (3, 17)), f32([[0.25, 0.5], [0.5, 4], [2, 1]])
case("gatherblockquantized_int4_odd", "GatherBlockQuantized", [i4(signed), i64([[1, 2]]), steps], {"block_size": 16},
     formula=[((signed * np.repeat(steps, [16, 1], 1))[[[1, 2]]], np.float32)])
TOKENS2, ROUTER = numbers([3, 4], 946), numbers([3, 2], 947)
W1, W2 = numbers([2, 5, 4], 948, scale=0.5), numbers([2, 4, 5], 949, scale=0.5)
chosen = ROUTER.argmax(-1)
share = softmax(wide(ROUTER)[0]).max(-1, keepdims=True)
answers = np.stack([W2[e].astype(np.float64) @ np.maximum(0, W1[e].astype(np.float64) @ t) for e, t in zip(chosen, wide(TOKENS2)[0])])
case("moe_relu", "MoE", [TOKENS2, ROUTER, W1, None, W2], {"k": 1}, formula=[share * answers])
case("moe_normalized", "MoE", [TOKENS2, ROUTER, W1, None, W2], {"k": 1, "normalize_routing_weights": 1}, formula=[answers])
PAIR, PAIR_SCALE, GATE = numbers([2, 6], 950), numbers([3], 951), numbers([2, 6], 952)
case("gatedrmsnorm", "GatedRMSNorm", [PAIR, PAIR_SCALE, GATE], {"activation": "sigmoid", "epsilon": 0.0625},
     formula=[(normalized(wide(PAIR)[0].reshape(2, 2, 3), False) * PAIR_SCALE).reshape(2, 6) * sigmoid(wide(GATE)[0])], kernel=False)
case("gatedadd", "GatedAdd", [PAIR, GATE, numbers([2, 1], 953)], formula=[PAIR + wide(GATE)[0] * numbers([2, 1], 953)], kernel=False)
case("unfoldtensor", "UnfoldTensor", [PAIR], {"dim": -1, "size": 3, "step": 2}, formula=[np.stack([PAIR[:, k:k + 3] for k in (0, 2)], 1)])
case("ngramrepeatblock", "NGramRepeatBlock", [i64([[1, 2, 1], [0, 0, 0]]), numbers([2, 3], 954)], {"ngram_size": 2},
     formula=[(np.where([[0, 0, 1], [1, 0, 0]], -np.inf, numbers([2, 3], 954)), np.float32)])

# States between steps.
STREAM, TAPS, BEFORE = numbers([1, 2, 4], 960), numbers([2, 1, 3], 961), numbers([1, 2, 2], 962)
virtual = np.concatenate(wide(BEFORE, STREAM), -1)
filtered = sum(virtual[..., k:k + 4] * TAPS[:, 0, k, None] for k in range(3)) + np.array([[0.5], [-1]])
case("causalconvwithstate", "CausalConvWithState", [STREAM, TAPS, f32([0.5, -1]), BEFORE], {"activation": "silu"},
     formula=[filtered * sigmoid(filtered), virtual[..., 4:]])
LQ, LK, LV, STATE = numbers([1, 3, 2], 963), numbers([1, 3, 2], 964), numbers([1, 3, 3], 965), numbers([1, 1, 2, 3], 966)
DECAY = -np.abs(numbers([1, 3, 1], 967))
state, seen_by = wide(STATE)[0][0, 0], []
for step in range(3):
    state = np.exp(np.float64(DECAY[0, step, 0])) * state + np.outer(LK[0, step].astype(np.float64), LV[0, step])
    seen_by.append(0.5 * LQ[0, step].astype(np.float64) @ state)
case("linearattention_gated", "LinearAttention", [LQ, LK, LV, STATE, DECAY], {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "gated", "scale": 0.5},
     formula=[np.array([seen_by]), state[None, None]])

# Words of texts: expected by the words of the operator's page.
def tokens(name, texts, expected, constant="", **attributes):
    case(f"tokenizer_{name}", "Tokenizer", [text(texts)], {"mark": 0, "mincharnum": 1, "pad_value": "#"} | attributes, formula=[text(expected)], constant=constant)


tokens("separators", ["Hello World", "I love computer science !"], [["Hello", "World", "#", "#", "#"], ["I", "love", "computer", "science", "!"]], separators=[" "])
tokens("separators_in_turn", [["a b  c,d", " x "]], [[["a", "b", "c", "d"], ["x", "#", "#", "#"]]], separators=[" +", ","])
tokens("separators_short_words", ["a bc,d ef"], [["bc", "ef"]], separators=[" ", ","], mincharnum=2)
tokens("marked", ["a b", "c", ""], [["\x02", "a", "b", "\x03"], ["\x02", "c", "\x03", ""], ["\x02", "\x03", "", ""]], separators=[" "], mark=1, pad_value="")
tokens("characters", ["abc", "d\u65e5"], [["\x02", "a", "b", "c", "\x03"], ["\x02", "d", "\u65e5", "\x03", "#"]], separators=[""], mark=1)
tokens("expression", ["The cat, 12", "\u00e9a"], [["The", "cat", "12"], ["a", "#", "#"]], tokenexp="[a-zA-Z0-9_]+")
tokens("longest_match", ["aaxaaa"], [["aa", "aaa"]], tokenexp="a|aa|aaa")
tokens("short_match_gives_up_a_character", ["\u00e9\u00e9bcd"], [["\u00e9bc"]], tokenexp="\u00e9\u00e9|\u00e9bc", mincharnum=3)
tokens("nothing_found", [["1", "2"]], [[[], []]], tokenexp="[a-z]", mark=1, constant="no token, so no marks either")


# An LSTM whose weights are quantized, and whose X, as a whole, and H, before each step, are quantized like
# DynamicQuantizeLinear.
def requantized(x):
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32(high - low) / np.float32(255)
    if scale == 0:
        return np.zeros_like(x, np.float64)
    zero = np.rint(np.clip(-np.float32(low) / scale, 0, 255))
    return (np.clip(np.rint(x.astype(np.float32) / scale) + zero, 0, 255) - zero).astype(np.float64) * np.float64(scale)


def dynamic_lstm(x, codes, scales, zeros, bias, lengths=None, h=None, c=None, reverse_only=False):
    """Y, Y_h, Y_c. `codes`: W [directions, inputs, 4 * hidden] and R; `scales` and `zeros` are theirs."""
    steps, batch, _ = x.shape
    directions, hidden = codes[1].shape[:2]
    lengths = [steps] * batch if lengths is None else lengths
    y, states = np.zeros((steps, directions, batch, hidden)), np.zeros((2, directions, batch, hidden))
    seen = requantized(x)
    for d in range(directions):
        w, r = [(code[d].astype(np.float64) - zero[d]) * scale[d].astype(np.float64) for code, scale, zero in zip(codes, scales, zeros)]
        b = bias[d].astype(np.float64).reshape(2, -1).sum(0)
        now, cell = [np.zeros((batch, hidden)) if state is None else state[d].astype(np.float64) for state in (h, c)]
        for step in range(steps):
            recurrent, before = requantized(now) @ r, now.copy()
            for sample in range(batch):
                if step >= lengths[sample]:
                    continue
                time = lengths[sample] - 1 - step if reverse_only or d == 1 else step
                i, o, f, g = np.split(seen[time, sample] @ w + recurrent[sample] + b, 4)
                cell[sample] = sigmoid(f) * cell[sample] + sigmoid(i) * np.tanh(g)
                before[sample] = y[time, d, sample] = sigmoid(o) * np.tanh(cell[sample])
            now = before
        states[:, d] = now, cell
    return [y, *states]


def dynamic_lstm_case(name, steps, batch, direction="forward", columns=False, dtype=i8, lengths=None, states=False, **more):
    directions, inputs, hidden = 2 if direction == "bidirectional" else 1, 3, 4
    x = numbers([steps, batch, inputs], 971)
    # Small quantized values: onnxruntime's sums of pairs in 16 bits hold them on every processor.
    codes = [dtype(np.rint(numbers([directions, rows, 4 * hidden], seed, scale=12)) + (40 if dtype is u8 else 0)) for rows, seed in ((inputs, 972), (hidden, 973))]
    scales = [f32(np.abs(numbers([directions] + [4 * hidden] * columns, seed)) / 64 + 0.0078125) for seed in (974, 975)]
    zeros = [dtype(np.full(scale.shape, 37 if dtype is u8 else 0)) for scale in scales]
    bias = numbers([directions, 8 * hidden], 976, scale=0.25)
    h, c = [numbers([directions, batch, hidden], seed, scale=0.25) if states else None for seed in (977, 978)]
    case(f"dynamicquantizelstm_{name}", "DynamicQuantizeLSTM",
         [x, *codes, bias, None if lengths is None else i32(lengths), h, c, None, scales[0], zeros[0], scales[1], zeros[1]],
         {"hidden_size": hidden, "direction": direction},
         formula=dynamic_lstm(x, codes, scales, zeros, bias, lengths, h, c, direction == "reverse"), **more)


dynamic_lstm_case("forward", 3, 1)
dynamic_lstm_case("reverse_states", 3, 1, "reverse", states=True)
dynamic_lstm_case("both_directions_columns", 4, 1, "bidirectional", columns=True)
dynamic_lstm_case("unsigned_codes", 2, 1, dtype=u8, states=True)
# onnxruntime quantizes the samples of each of its threads for themselves.
dynamic_lstm_case("lengths", 4, 3, "bidirectional", lengths=[4, 2, 0], states=True, kernel=False)
dynamic_lstm_case("samples_together", 3, 2, kernel=False)
