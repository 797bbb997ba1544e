# SPDX-License-Identifier: Apache-2.0
"""More cases of com.microsoft, next to microsoft.py: formulas of ContribOperators.md in numpy next to onnxruntime, which defines these operators."""
import numpy as np
import torch

from .case import INF, boolean, f32, family, i8, i16, i32, i64, numbers, u8
from .formulas import sigmoid
from .windows import conv, conv_transpose, pool

family_case = family("contrib")


def case(name, op, inputs, attributes=None, outputs=None, spec="", **more):
    """`outputs` are computed by the definition; onnxruntime must agree where it has a kernel on the CPU."""
    family_case(f"ms_{name}", op, 1, inputs, attributes, outputs, domain="com.microsoft", spec="" if "also" in more else f"ContribOperators.md, {op}{': ' * bool(spec)}{spec}", **more)


def single(x):
    return np.asarray(x).astype(np.float32)


X, BIAS = numbers([2, 3, 8], 901), numbers([8], 902)
WIDE = X.astype(np.float64)


case("quickgelu_alpha", "QuickGelu", [X], {"alpha": 0.5}, [single(WIDE * sigmoid(0.5 * WIDE))])
SKIP = numbers([2, 3, 8], 903)

# Products.
A, B = numbers([2, 3, 4], 911), numbers([2, 4, 5], 912)
for ta, tb in ((0, 0), (1, 0), (0, 1), (1, 1)):
    a, b = (A.swapaxes(1, 2).copy() if ta else A), (B.swapaxes(1, 2).copy() if tb else B)
    case(f"fusedmatmul_{ta}{tb}_alpha", "FusedMatMul", [a, b], {"transA": ta, "transB": tb, "alpha": 0.5}, [single(0.5 * (A @ B))])
case("fusedmatmul_trans_batch", "FusedMatMul", [numbers([3, 2, 4, 5], 913), numbers([2, 4, 5, 6], 914)], {"transBatchA": 1},
     [numbers([3, 2, 4, 5], 913).transpose(1, 2, 0, 3) @ numbers([2, 4, 5, 6], 914)])
case("transposematmul", "TransposeMatMul", [A.swapaxes(1, 2).copy(), B], {"transA": 1}, [A @ B])

# Convolutions.
IMAGE, KERNEL, EACH = numbers([1, 2, 5, 4], 921), numbers([3, 2, 3, 2], 922), numbers([3], 923)
PADS = {"pads": [1, 0, 1, 1], "strides": [2, 1]}
plain = conv(IMAGE, KERNEL, EACH, **PADS)
case("fusedconv_relu", "FusedConv", [IMAGE, KERNEL, EACH], PADS | {"activation": "Relu"}, [np.maximum(plain, 0)])
case("fusedconv_clip", "FusedConv", [IMAGE, KERNEL, EACH], PADS | {"activation": "Clip", "activation_params": [-1.0, 2.0]}, [np.clip(plain, -1, 2)])
Z = numbers(plain.shape, 924)
case("fusedconv_sum_relu", "FusedConv", [IMAGE, KERNEL, EACH, Z], PADS | {"activation": "Relu"}, [np.maximum(plain + Z, 0)])
UP = numbers([2, 3, 2, 2], 925)
case("convtransposewithdynamicpads", "ConvTransposeWithDynamicPads", [IMAGE, UP, i64([1, 0, 0, 1]), EACH], {"strides": [2, 2]},
     [conv_transpose(IMAGE, UP, EACH, strides=[2, 2], pads=[1, 0, 0, 1])])
BYTES = u8(np.random.default_rng(926).integers(0, 256, (1, 5, 4, 3)))
case("nhwcmaxpool", "NhwcMaxPool", [BYTES], {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]},
     [np.ascontiguousarray(pool(BYTES.transpose(0, 3, 1, 2).astype(np.float64), "max", [2, 3], [2, 1], None, [1, 1, 0, 1]).transpose(0, 2, 3, 1)).astype(np.uint8)])


# Norms. The values are small, so that epsilon counts.
def layer_norm(x, gamma, beta=0.0, epsilon=1e-5, simplified=False):
    x = x.astype(np.float64)
    mean = 0 if simplified else x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + epsilon) * gamma + beta


SMALL, SMALL_SKIP, GAMMA = single(X * 0.01), single(SKIP * 0.01), numbers([8], 931)
case("skiplayernormalization_skip_of_rank_2", "SkipLayerNormalization", [SMALL, SMALL_SKIP[0], GAMMA], {"epsilon": 1e-3},
     [single(layer_norm(SMALL.astype(np.float64) + SMALL_SKIP[0], GAMMA, epsilon=1e-3))])
CHANNELS = single(numbers([2, 4, 3, 2], 936) * 0.01)
grouped = CHANNELS.astype(np.float64).reshape(2, 2, -1)
grouped = ((grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)).reshape(CHANNELS.shape)
G4, B4 = numbers([4], 937), numbers([4], 938)
normal = grouped * G4[:, None, None] + B4[:, None, None]
swished = np.ascontiguousarray((normal * sigmoid(normal)).transpose(0, 2, 3, 1))
case("groupnorm_channels_last_silu", "GroupNorm", [np.ascontiguousarray(CHANNELS.transpose(0, 2, 3, 1)), G4, B4],
     {"groups": 2, "activation": 1, "channels_last": 1, "epsilon": 1e-5}, [single(swished)])
case("groupnorm_channels_first", "GroupNorm", [CHANNELS, G4, B4], {"groups": 2, "activation": 0, "channels_last": 0, "epsilon": 1e-5}, [single(normal)])


# Quantized weights and activations.
def quantize(x, scale, zero, dtype):
    info = np.iinfo(dtype)
    return np.clip(np.rint(x / scale) + zero, info.min, info.max).astype(dtype)


def matmul_nbits(name, rng, bits, block, rows):
    """With zero points, and with the middle of the range in their place."""
    n, k = 3, 40
    blocks = -(-k // block)
    weights = rng.integers(0, 2 ** bits, (n, blocks * block))
    scales, zeros = f32(rng.integers(1, 9, (n, blocks)) / 64), rng.integers(0, 2 ** bits, (n, blocks))
    per = 8 // bits
    packed = sum(weights.reshape(n, blocks, -1, per)[..., j] << (bits * j) for j in range(per)).astype(np.uint8)
    padded = np.pad(zeros, ((0, 0), (0, -blocks % per))).reshape(n, -1, per)
    packed_zeros = sum(padded[..., j] << (bits * j) for j in range(per)).astype(np.uint8)
    real = (weights - np.repeat(zeros, block, 1)) * np.repeat(scales.astype(np.float64), block, 1)
    middle = (weights - 2 ** (bits - 1)) * np.repeat(scales.astype(np.float64), block, 1)
    a = numbers([rows, k], 942)
    sizes = {"K": k, "N": n, "bits": bits, "block_size": block}
    case(f"matmulnbits_{name}_zero_points", "MatMulNBits", [a, packed, scales, packed_zeros], sizes, [single(a.astype(np.float64) @ real[:, :k].T)])
    case(f"matmulnbits_{name}_middle", "MatMulNBits", [a, packed, scales], sizes, [single(a.astype(np.float64) @ middle[:, :k].T)])


rng = np.random.default_rng(941)
for bits in (4, 8):
    matmul_nbits(bits, rng, bits, 16, 2)
for rows in (1, 6, 11):
    matmul_nbits(f"4_block_32_rows_{rows}", np.random.default_rng(rows), 4, 32, rows)
QB, SCALE, ZERO = u8(rng.integers(0, 256, (6, 4))), f32([0.125, 0.25, 0.5, 0.0625]), u8([128, 3, 100, 7])
a = numbers([3, 6], 943)
low, high = min(a.min(), 0), max(a.max(), 0)
a_scale = np.float32(np.float32(high - low) / np.float32(255))
a_zero = np.clip(np.rint(-low / a_scale), 0, 255)
dynamic = (quantize(a, a_scale, a_zero, np.uint8).astype(np.float64) - a_zero) @ (QB.astype(np.float64) - ZERO) * a_scale * SCALE
case("dynamicquantizematmul", "DynamicQuantizeMatMul", [a, QB, SCALE, ZERO, numbers([4], 944)], None, [single(dynamic + numbers([4], 944))])
QA = u8(rng.integers(0, 256, (3, 6)))
real = (QA.astype(np.float64) - 121) @ (QB.astype(np.float64) - ZERO) * 0.25 * SCALE
CI = i32([5, -7, 11, 2])
gemm = ((QA.astype(np.float64) - 121) @ (QB.astype(np.float64) - 9) + CI) * 0.25 * 0.5
case("qgemm_float", "QGemm", [QA, f32(0.25), u8(121), QB, f32(0.5), u8(9), CI], None, [single(gemm)])
case("matmulinteger16", "MatMulInteger16", [i16([[300, -200], [7, 30000]]), i16([[5, -6], [1000, 2]])], None,
     [i32([[300 * 5 - 200000, -1800 - 400], [35 + 30000000, -42 + 60000]])])
case("mulinteger", "MulInteger", [u8([[1, 200], [7, 9]]), u8(5), u8([3, 255]), u8(2)], None, [i32([[-4, 195 * 253], [2, 4 * 253]])])
for dtype, make in ((np.uint8, u8), (np.int8, i8)):
    info = np.iinfo(dtype)
    word = "uint8" if dtype == np.uint8 else "int8"
    q, r = make(rng.integers(info.min, info.max + 1, (2, 5))), make(rng.integers(info.min, info.max + 1, 5))
    z0, z1, z2 = info.min + 120, info.min + 131, info.min + 100
    x, y = (q.astype(np.float64) - z0) * 0.25, (r.astype(np.float64) - z1) * 0.0625
    given = [q, f32(0.25), make(z0), r, f32(0.0625), make(z1)]
    case(f"qlinearadd_{word}", "QLinearAdd", [*given, f32(0.5), make(z2)], None, [quantize(x + y, 0.5, z2, dtype)])
    case(f"qlinearmul_{word}", "QLinearMul", [*given, f32(2), make(z2)], None, [quantize(x * y, 2, z2, dtype)])
    case(f"qlinearsigmoid_{word}", "QLinearSigmoid", [q, f32(0.03125), make(z0), f32(0.00390625), make(info.min)], None,
         [quantize(sigmoid(x / 8), 0.00390625, info.min, dtype)])
    case(f"qlinearleakyrelu_{word}", "QLinearLeakyRelu", [q, f32(0.25), make(z0), f32(0.375), make(z2)], {"alpha": 0.125},
         [quantize(np.where(x < 0, x * 0.125, x), 0.375, z2, dtype)])
    soft = np.exp(x / 4) / np.exp(x / 4).sum(-1, keepdims=True)
    case(f"qlinearsoftmax_{word}", "QLinearSoftmax", [q, f32(0.0625), make(z0), f32(0.00390625), make(info.min)], {"axis": -1, "opset": 13},
         [quantize(soft, 0.00390625, info.min, dtype)])
    joined = np.concatenate([x, np.broadcast_to(y, (1, 5))])
    case(f"qlinearconcat_{word}", "QLinearConcat", [f32(0.375), make(z2), q, f32(0.25), make(z0), r.reshape(1, 5), f32(0.0625), make(z1)], {"axis": 0},
         [quantize(joined, 0.375, z2, dtype)])
    image = make(rng.integers(info.min, info.max + 1, (1, 2, 4, 5)))
    real = (image.astype(np.float64) - z0) * 0.25
    case(f"qlinearglobalaveragepool_{word}", "QLinearGlobalAveragePool", [image, f32(0.25), make(z0), f32(0.375), make(z2)], None,
         [quantize(real.mean((2, 3), keepdims=True), 0.375, z2, dtype)])
    case(f"qlinearaveragepool_{word}", "QLinearAveragePool", [image, f32(0.25), make(z0), f32(0.375), make(z2)],
         {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]},
         [quantize(pool(real, "average", [2, 3], [2, 1], None, [1, 1, 0, 1]), 0.375, z2, dtype)])
    case(f"qlinearreducemean_{word}", "QLinearReduceMean", [image, f32(0.25), make(z0), f32(0.375), make(z2)], {"axes": [1, 3], "keepdims": 0},
         [quantize(real.mean((1, 3)), 0.375, z2, dtype)])
    choose = boolean([[True, False, True, False, False], [False, True, True, True, False]])
    case(f"qlinearwhere_{word}", "QLinearWhere", [choose, *given, f32(0.375), make(z2)], None,
         [quantize(np.where(choose, x, y), 0.375, z2, dtype)])
case("quantizelinear_int16", "QuantizeLinear", [f32([0.5, -1.5, 40000, 2.5]), f32(1), i16(-3)], None, [i16([-3, -5, 32767, -1])])
case("dequantizelinear_axis", "DequantizeLinear", [u8([[1, 200], [7, 9]]), f32([0.5, 2]), u8([3, 100])], {"axis": 1}, [f32([[-1, 200], [2, -182]])])

# Tensors.
P, Q = numbers([3, 4], 951), numbers([2, 4], 952)
square = ((P[:, None].astype(np.float64) - Q) ** 2).sum(-1)
case("cdist_sqeuclidean", "CDist", [P, Q], {"metric": "sqeuclidean"}, [single(square)])
PAIRS, OTHER = numbers([2, 3, 2], 953), numbers([2, 3, 2], 954)
x, y = (v[..., 0].astype(np.complex128) + 1j * v[..., 1] for v in (PAIRS, OTHER))


def parts(z):
    return single(np.stack([z.real, z.imag], -1))


case("complexmul", "ComplexMul", [PAIRS, OTHER], None, [parts(x * y)])
case("complexmulconj", "ComplexMulConj", [PAIRS, OTHER], None, [parts(x * y.conj())])
case("expanddims_negative", "ExpandDims", [P, i32(-1)], None, [P[..., None]])
case("isallfinite_true", "IsAllFinite", [f32([1, 2]), f32([3])], None, [boolean(True)])
case("isallfinite_infinity", "IsAllFinite", [f32([1, 2]), f32([INF])], None, [boolean(False)], constant="one is not finite")
case("torchembedding", "TorchEmbedding", [P, i64([[2, 0], [1, 1]])], None, [P[[[2, 0], [1, 1]]]])
case("gathernd", "GatherND", [numbers([2, 3, 4], 956), i64([[0, 1], [1, 2]])], None, [np.stack([numbers([2, 3, 4], 956)[0, 1], numbers([2, 3, 4], 956)[1, 2]])])
case("trilu_upper", "Trilu", [P, i64(1)], {"upper": 1}, [np.triu(P, 1)])


# Attention.
def heads(x, count):
    return x.astype(np.float64).reshape(*x.shape[:2], count, -1).swapaxes(1, 2)


def attend(q, k, v, bias=0.0, scale=None):
    scores = q @ k.swapaxes(2, 3) * (scale or 1 / np.sqrt(q.shape[3])) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.swapaxes(1, 2).reshape(y.shape[0], y.shape[2], -1)


HIDDEN = numbers([2, 3, 4], 961)
WEIGHT, ATTENTION_BIAS = numbers([4, 12], 962, scale=0.5), numbers([12], 963, scale=0.5)
qkv = np.split(HIDDEN.astype(np.float64) @ WEIGHT + ATTENTION_BIAS, 3, -1)
q, k, v = (heads(part, 2) for part in qkv)
case("attention_plain", "Attention", [HIDDEN, WEIGHT, ATTENTION_BIAS], {"num_heads": 2}, [single(attend(q, k, v))])
lengths = np.where(np.arange(3) < np.array([2, 3])[:, None, None, None], 0, -np.inf)
case("attention_mask_of_lengths", "Attention", [HIDDEN, WEIGHT, ATTENTION_BIAS, i32([2, 3])], {"num_heads": 2}, [single(attend(q, k, v, lengths))])
raw = np.where(np.array([[1, 0, 1], [1, 1, 0]], bool)[:, None, None], 0, -np.inf)
case("attention_raw_mask", "Attention", [HIDDEN, WEIGHT, ATTENTION_BIAS, i32([[1, 0, 1], [1, 1, 0]])], {"num_heads": 2}, [single(attend(q, k, v, raw))])
MQ, MK, MV = numbers([2, 3, 4], 964), numbers([2, 5, 4], 965), numbers([2, 5, 6], 966)
case("multiheadattention_cross", "MultiHeadAttention", [MQ, MK, MV], {"num_heads": 2}, [single(attend(heads(MQ, 2), heads(MK, 2), heads(MV, 2)))])
SAME = numbers([2, 5, 4], 967)
biased = [heads(part + b, 2) for part, b in zip((MQ, MK, SAME), np.split(ATTENTION_BIAS.astype(np.float64), 3))]
case("multiheadattention_bias_scale", "MultiHeadAttention", [MQ, MK, SAME, ATTENTION_BIAS], {"num_heads": 2, "scale": 0.5},
     [single(attend(*biased, scale=0.5))])
TOKENS = numbers([2, 3, 4], 973)
case("removepadding", "RemovePadding", [TOKENS, i32([2, 1])], None,
     [np.concatenate([TOKENS[0, :2], TOKENS[1, :1]]), i32([[0, 1, 3], [2, 4, 5]]), i32([0, 2, 3]), i32([2])], count=4)
case("restorepadding", "RestorePadding", [numbers([3, 4], 974), i32([[0, 1, 3], [2, 4, 5]])], None,
     [np.stack([np.concatenate([numbers([3, 4], 974)[:2], np.zeros([1, 4], np.float32)]),
                np.concatenate([numbers([3, 4], 974)[2:], np.zeros([2, 4], np.float32)])])])

# Operators that occur once.
family_case("ms_simplifiedlayernormalization", "SimplifiedLayerNormalization", 17, [SMALL, GAMMA], {"axis": -1, "epsilon": 1e-5},
            [single(layer_norm(SMALL, GAMMA, simplified=True))], spec="onnxruntime's operator in ai.onnx: x / sqrt(mean(x^2) + epsilon) * scale")
case("biasdropout_inference", "BiasDropout", [X, BIAS, SKIP], None, [X + BIAS + SKIP], "nothing is dropped outside training")
LAST = np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))
LAST_Z = np.ascontiguousarray(Z.transpose(0, 2, 3, 1))
case("nhwcfusedconv_sum_relu", "NhwcFusedConv", [LAST, KERNEL, EACH, LAST_Z], PADS | {"activation": "Relu"},
     [np.ascontiguousarray(np.maximum(plain + Z, 0).transpose(0, 2, 3, 1))])
ADDED = single(numbers([2, 4], 981) * 0.01)
joined = CHANNELS.astype(np.float64) + ADDED[:, :, None, None]
parted = joined.reshape(2, 2, -1)
parted = ((parted - parted.mean(-1, keepdims=True)) / np.sqrt(parted.var(-1, keepdims=True) + 1e-5)).reshape(CHANNELS.shape)
case("skipgroupnorm", "SkipGroupNorm", [CHANNELS, G4, B4, ADDED], {"groups": 2, "activation": 0, "channels_last": 0, "epsilon": 1e-5},
     [single(parted * G4[:, None, None] + B4[:, None, None]), single(joined)])
QX, QW = u8(rng.integers(0, 256, (1, 4, 5, 2))), u8(rng.integers(0, 256, (3, 2, 2, 3)))
sums = conv(QX.transpose(0, 3, 1, 2).astype(np.float64) - 100, QW.astype(np.float64) - 7) + np.reshape([5, -7, 11], [1, 3, 1, 1])
case("qlinearconv_channels_last", "QLinearConv", [QX, f32(0.25), u8(100), QW, f32(0.5), u8(7), f32(384), u8(90), i32([5, -7, 11])], {"channels_last": 1},
     [np.ascontiguousarray(quantize(sums * 0.125, 384, 90, np.uint8).transpose(0, 2, 3, 1))])
QH, QWEIGHT = u8(rng.integers(0, 256, (2, 3, 4))), u8(rng.integers(0, 256, (4, 12)))
q, k, v = (heads(part, 2) for part in np.split((QH.astype(np.float64) - 120) @ (QWEIGHT.astype(np.float64) - 130) * 0.0078125 * 0.015625 + ATTENTION_BIAS, 3, -1))
case("qattention", "QAttention", [QH, QWEIGHT, ATTENTION_BIAS, f32(0.0078125), f32(0.015625), None, u8(120), u8(130)], {"num_heads": 2}, [single(attend(q, k, v))])
NF4 = [-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
       0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
       0.7229568362236023, 1]
NIBBLES, LARGEST = rng.integers(0, 16, (3, 32)), f32([1, 0.5, 2, 0.25, 1.5, 3])
weights = (np.array(NF4)[NIBBLES].reshape(-1, 16) * LARGEST.astype(np.float64)[:, None]).reshape(3, 32)
TALL = numbers([2, 32], 982)
case("matmulbnb4_nf4", "MatMulBnb4", [TALL, u8((NIBBLES[:, 0::2] << 4 | NIBBLES[:, 1::2]).reshape(-1)), LARGEST],
     {"K": 32, "N": 3, "block_size": 16, "quant_type": 1}, [single(TALL.astype(np.float64) @ weights.T)])
PACKED = numbers([5, 4], 983)
each = [np.split(PACKED[rows].astype(np.float64)[None] @ WEIGHT + ATTENTION_BIAS, 3, -1) for rows in (slice(0, 2), slice(2, 5))]
# Tokens first, then the positions of padding.
case("packedattention", "PackedAttention", [PACKED, WEIGHT, ATTENTION_BIAS, i32([[0, 1, 3], [4, 5, 2]]), i32([0, 2, 5])], {"num_heads": 2},
     [single(np.concatenate([attend(*(heads(part, 2) for part in parts))[0] for parts in each]))])
PK, PV = numbers([5, 4], 984), numbers([5, 4], 985)
each = [[heads(part[rows][None], 2) for part in (PACKED, PK, PV)] for rows in (slice(0, 2), slice(2, 5))]
case("packedmultiheadattention", "PackedMultiHeadAttention", [PACKED, PK, PV, None, i32([[0, 1, 3], [4, 5, 2]]), i32([0, 2, 5])], {"num_heads": 2},
     [single(np.concatenate([attend(*parts)[0] for parts in each]))])
case("pad_negative", "Pad", [f32([[1, 2, 3], [4, 5, 6]]), i64([1, -1, 0, 2]), f32([9])], None, [f32([[9, 9, 9, 9], [2, 3, 9, 9], [5, 6, 9, 9]])])
case("range_default_step", "Range", [f32(1), f32(4)], None, [f32([1, 2, 3])], "delta is 1 by default")
FIELD, POINTS = numbers([1, 2, 3, 4], 991), f32([[[[-1.2, -0.9], [0.1, 0.3], [0.75, 1.1]], [[-0.5, 0.5], [2.4, -0.25], [0, 0]]]])
case("gridsample_border", "GridSample", [FIELD, POINTS], {"mode": "bilinear", "padding_mode": "border", "align_corners": 1}, None, also={
    "torch": [torch.nn.functional.grid_sample(torch.from_numpy(FIELD), torch.from_numpy(POINTS), "bilinear", "border", True).numpy()]})
COUNTS = i8(rng.integers(-128, 128, (2, 3, 2)))
case("reducesuminteger", "ReduceSumInteger", [COUNTS], {"axes": [0, 2], "keepdims": 0}, [COUNTS.astype(np.int32).sum((0, 2), dtype=np.int32)])
case("sampleop", "SampleOp", [X], None, [X], "the input")
case("scaledsilu", "ScaledSiLU", [X], {"alpha": 1.5}, [single(1.5 * WIDE * sigmoid(1.5 * WIDE))])
branches = SMALL.astype(np.float64).reshape(2, 3, 2, 4)
branches = branches / np.sqrt((branches ** 2).mean(-1, keepdims=True) + 1e-5) * numbers([4], 992)
case("branchwisermsnorm", "BranchwiseRMSNorm", [SMALL, numbers([4], 992)], {"num_branches": 2, "epsilon": 1e-5}, [single(branches.reshape(SMALL.shape))])
