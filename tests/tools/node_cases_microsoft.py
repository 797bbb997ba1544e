# SPDX-License-Identifier: Apache-2.0
"""Cases of com.microsoft (but for attention: node_cases_attention.py) for compare_nodes.py."""
import math

import numpy as np
from onnx import TensorProto

import node_cases_attention
from node_cases import Case, rng_for
from op_cases.formulas import bucket

F, H, I = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64
U8, S8, I32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32
HALF = (4e-3, 4e-3)  # onnxruntime's kernels for half precision round between their steps


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def activations():
    rng = rng_for("activations")
    x = rng.normal(size=(2, 3, 8)).astype(np.float32) * 3
    bias = rng.normal(size=8).astype(np.float32)
    yield Case("Gelu", [x])
    yield Case("QuickGelu", [x])
    yield Case("QuickGelu", [x], {"alpha": 0.9})
    yield Case("BiasGelu", [x, bias])
    yield Case("FastGelu", [x])
    yield Case("FastGelu", [x, bias])
    half = x.astype(np.float16)
    for op in ("Gelu", "QuickGelu", "FastGelu"):
        exact = {"Gelu": gelu, "FastGelu": fast_gelu, "QuickGelu": lambda v: v / (1 + np.exp(-1.702 * v))}[op]
        yield Case(op, [half], expected=[exact(half.astype(np.float64))], tolerance=(1e-3, 1e-6), note="half: onnxruntime rounds between steps")
    left, right = np.split(x.astype(np.float64) + bias, 2, axis=-1)
    yield Case("BiasSplitGelu", [x, bias], expected=[left * gelu(right)], note="no kernel on the CPU")
    skip = rng.normal(size=x.shape).astype(np.float32)
    yield Case("BiasAdd", [x, bias, skip], expected=[x + bias + skip], note="no kernel on the CPU")
    data = rng.normal(size=(4, 3, 2, 5)).astype(np.float32)
    soft = lambda v, n: np.exp(v) / np.exp(v).sum(axis=tuple(range(-n, 0)), keepdims=True)
    for axis, inner, shape, seen in ((3, 1, (4, 1, 1, 5), None), (3, 0, (3, 2, 5), (1, 3, 2, 5)), (2, 1, (4, 1, 2, 5), None)):
        add = rng.normal(size=shape).astype(np.float32)
        full = data.astype(np.float64) + add.reshape(seen or shape)
        yield Case("BiasSoftmax", [data, add], {"axis": axis, "is_inner_broadcast": inner}, expected=[soft(full, 4 - axis)],
                   note="no kernel on the CPU")
    yield Case("BiasDropout", [x, bias, skip], expected=[x + bias + skip], note="no kernel on the CPU")


def products():
    rng = rng_for("products")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            a = normal(2, 5, 3) if trans_a else normal(2, 3, 5)
            b = normal(2, 4, 5) if trans_b else normal(2, 5, 4)
            for alpha in (1.0, 0.125):
                yield Case("FusedMatMul", [a, b], {"transA": trans_a, "transB": trans_b, "alpha": alpha})
                yield Case("TransposeMatMul", [a, b], {"transA": trans_a, "transB": trans_b, "alpha": alpha})
            yield Case("FusedGemm", [a[0], b[0], normal(4)], {"transA": trans_a, "transB": trans_b, "activation": "Relu", "alpha": 0.5, "beta": 2.0})
            yield Case("FusedMatMulActivation", [a, b], {"transA": trans_a, "transB": trans_b, "activation": "Relu"},
                       expected=[np.maximum(0, np.matmul(a.swapaxes(1, 2) if trans_a else a, b.swapaxes(1, 2) if trans_b else b))],
                       note="no kernel on the CPU")
    yield Case("FusedMatMul", [normal(3, 2, 4, 5), normal(2, 4, 5, 6)], {"transBatchA": 1})
    yield Case("FusedMatMul", [normal(3, 2, 4, 5), normal(2, 4, 3, 6)], {"transBatchA": 1, "transA": 1})
    yield Case("FusedMatMul", [normal(2, 4, 3, 5), normal(5, 2, 4, 6)], {"transBatchB": 1})
    yield Case("FusedMatMul", [normal(2, 4, 3, 5), normal(6, 2, 4, 5)], {"transBatchB": 1, "transB": 1})
    yield Case("FusedMatMul", [normal(5), normal(5, 4)])
    yield Case("FusedMatMul", [normal(4, 5), normal(5)])
    for name, more in (("LeakyRelu", {"activation_alpha": 0.2}), ("Sigmoid", {}), ("Tanh", {}), ("Elu", {"activation_alpha": 0.7}),
                       ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Softplus", {}), ("Softsign", {})):
        yield Case("FusedGemm", [normal(3, 5), normal(5, 4), normal(3, 1)], {"activation": name, **more})
        yield Case("FusedGemm", [normal(3, 5), normal(5, 4)], {"activation": name, **more})
    x, w, bias = normal(2, 3, 6), normal(6, 4), normal(4)
    yield Case("GemmFastGelu", [x, w, bias], expected=[fast_gelu(x.astype(np.float64) @ w + bias)], note="no kernel on the CPU")


def convolutions():
    rng = rng_for("convolutions")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    x, w, bias = normal(2, 4, 7, 6), normal(6, 4, 3, 3), normal(6)
    options = ({"pads": [1, 1, 1, 1]}, {"strides": [2, 1]}, {"dilations": [2, 1], "pads": [2, 0, 1, 1]}, {"auto_pad": "SAME_UPPER"})
    activations = ({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_params": [0.3]}, {"activation": "Tanh"},
                   {"activation": "Sigmoid"}, {"activation": "Clip", "activation_params": [-0.5, 0.75]},
                   {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}, {})
    for option in options:
        for activation in activations:
            yield Case("FusedConv", [x, w, bias], {**option, **activation})
    yield Case("FusedConv", [x, w, bias, normal(2, 6, 7, 6)], {"pads": [1, 1, 1, 1], "activation": "Relu"})
    yield Case("FusedConv", [x, normal(6, 2, 3, 3), bias], {"group": 2, "activation": "Relu"})
    from onnx.reference import ReferenceEvaluator
    from onnx import helper

    def conv(inputs, attributes):
        names = [f"i{k}" for k in range(len(inputs))]
        node = helper.make_node("Conv", names, ["y"], **attributes)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, F, None) for n in names],
                                  [helper.make_tensor_value_info("y", F, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))[0]

    for option in options:
        expected = conv([x, w, bias], option).transpose(0, 2, 3, 1)
        yield Case("NhwcConv", [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), w, bias], option, expected=[expected], note="no kernel on the CPU")
    z = normal(2, 7, 6, 6)
    expected = np.maximum(0, conv([x, w, bias], options[0]).transpose(0, 2, 3, 1) + z)
    yield Case("NhwcFusedConv", [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), w, bias, z], {**options[0], "activation": "Relu"},
               expected=[expected], note="float32 has no kernel on the CPU")
    wt = normal(4, 3, 3, 2)
    for option in ({"strides": [2, 2]}, {"strides": [2, 1], "output_padding": [1, 0]}, {"dilations": [2, 1]}):
        yield Case("ConvTransposeWithDynamicPads", [x, wt, np.array([1, 0, 0, 1]), normal(3)], option)
        yield Case("ConvTransposeWithDynamicPads", [x, wt, np.array([0, 0, 0, 0])], option)


def normalizations():
    rng = rng_for("normalizations")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    x, gamma, beta, bias = normal(2, 3, 8), normal(8), normal(8), normal(8)
    for skip in (normal(2, 3, 8), normal(1, 3, 8), normal(3, 8)):
        for optional in ([beta, bias], [beta], [None, bias], []):
            yield Case("SkipLayerNormalization", [x, skip, gamma, *optional], {"epsilon": 1e-5}, 4, types=[F] * 4, optional_outputs=(1, 2))
        for optional in ([bias], []):
            yield Case("SkipSimplifiedLayerNormalization", [x, skip, gamma, *optional], {"epsilon": 1e-5}, 4, types=[F] * 4, optional_outputs=(1, 2))
    half = [v.astype(np.float16) for v in (x, normal(2, 3, 8), gamma, beta, bias)]
    yield Case("SkipLayerNormalization", half, {"epsilon": 1e-5}, types=[H], tolerance=HALF)
    for axis in (-1, 1):
        scale = gamma if axis == -1 else normal(3, 8)
        yield Case("SimplifiedLayerNormalization", [x, scale], {"axis": axis, "epsilon": 1e-5}, domain="")
        yield Case("LayerNormalization", [x, scale, scale + 1], {"axis": axis, "epsilon": 1e-5}, 1, domain="")
    words, positions, segments = normal(11, 8), normal(6, 8), normal(2, 8)
    ids, kinds = rng.integers(0, 11, (2, 4)).astype(np.int32), rng.integers(0, 2, (2, 4)).astype(np.int32)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.int32)
    types = [F, I32, F]
    where = np.array([[3, 1, 0, 5], [2, 2, 4, 1]], np.int32)
    for k, s in ((kinds, segments), (None, None)):
        for m in (mask, None):
            for p in (where, where[:1], None):
                yield Case("EmbedLayerNormalization", [ids, k, words, positions, s, gamma, beta, m, p], {"epsilon": 1e-6}, 3, types=types)
    yield from group_norms(rng, normal)


def group_norms(rng, normal):
    def group_norm(x, gamma, beta, groups, silu):
        n, c, h, w = x.shape
        g = x.astype(np.float64).reshape(n, groups, -1)
        g = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + 1e-5)
        y = g.reshape(n, c, h, w) * gamma[:, None, None] + beta[:, None, None]
        return y / (1 + np.exp(-y)) if silu else y

    gamma, beta, bias = normal(6), normal(6), normal(6)
    last = lambda v: np.ascontiguousarray(v.transpose(0, 2, 3, 1))
    for channels_last in (0, 1):
        for silu in (0, 1):
            x, skip = normal(2, 6, 4, 3), normal(2, 6)
            order = last if channels_last else np.ascontiguousarray
            options = {"groups": 3, "activation": silu, "channels_last": channels_last}
            yield Case("GroupNorm", [order(x), gamma, beta], options, expected=[order(group_norm(x, gamma, beta, 3, silu))],
                       note="no kernel on the CPU")
            total = x + skip[:, :, None, None] + bias[:, None, None]
            yield Case("SkipGroupNorm", [order(x), gamma, beta, skip, bias], options, 2,
                       expected=[order(group_norm(total, gamma, beta, 3, silu)), order(total)], note="no kernel on the CPU")


def quantized_products():
    rng = rng_for("quantized products")
    for bits in (2, 4, 8):
        for block, k in ((16, 48), (32, 40), (16, 33)):
            n, blocks = 5, -(-k // block)
            a = rng.normal(size=(2, 3, k)).astype(np.float32)
            b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
            scales = rng.uniform(0.01, 0.1, (n, blocks)).astype(np.float32)
            packed = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
            floats = rng.uniform(1, 2**bits - 1, (n, blocks)).astype(np.float32)
            options = {"K": k, "N": n, "bits": bits, "block_size": block}
            bias = rng.normal(size=n).astype(np.float32)
            for more in ([], [packed], [None, None, bias], [packed, None, bias]):
                yield Case("MatMulNBits", [a, b, scales, *more], options, types=[F])
            element = np.arange(blocks * block)
            bit = element * bits
            numbers = (b.reshape(n, -1)[:, bit // 8] >> (bit % 8)) & (2**bits - 1)
            weights = (numbers - np.repeat(floats, block, 1).astype(np.float64)) * np.repeat(scales, block, 1)
            yield Case("MatMulNBits", [a, b, scales, floats], options, types=[F], expected=[a @ weights[:, :k].T],
                       note="zero points as floats: onnxruntime has them for 4 bits alone")
    k, n = 64, 5
    a, b = rng.normal(size=(3, k)).astype(np.float32), rng.integers(0, 256, (n, 2, 16)).astype(np.uint8)
    groups = rng.permutation(np.arange(k) // 32).astype(np.int32)
    scales = rng.uniform(0.01, 0.1, (n, 2)).astype(np.float32)
    yield Case("MatMulNBits", [a, b, scales, None, groups], {"K": k, "N": n, "bits": 4, "block_size": 32}, types=[F])
    for kind in (0, 1):
        b = rng.integers(0, 256, (n * k // 2)).astype(np.uint8)
        absmax = rng.uniform(0.5, 2, n * k // 16).astype(np.float32)
        yield Case("MatMulBnb4", [a, b, absmax], {"K": k, "N": n, "block_size": 16, "quant_type": kind}, types=[F])
    yield from integer_products(rng)


def integer_products(rng):
    for signed in (np.uint8, np.int8):
        info = np.iinfo(signed)
        a = rng.normal(size=(2, 4, 6)).astype(np.float32)
        b = rng.integers(info.min, info.max + 1, (6, 5)).astype(signed)
        for columns in (False, True):
            shape = (5,) if columns else ()
            scale, zero = rng.uniform(0.01, 0.1, shape).astype(np.float32), rng.integers(info.min, info.max, shape).astype(signed)
            scale, zero = np.asarray(scale), np.asarray(zero)
            bias = rng.normal(size=5).astype(np.float32)
            for more in ([], [zero], [zero, bias], [None, bias]):
                yield Case("DynamicQuantizeMatMul", [a, b, scale, *more], types=[F])
            qa = rng.integers(0, 256, (4, 6)).astype(np.uint8)
            a_scale, a_zero = np.array(0.03, np.float32), np.array(121, np.uint8)
            for more in ([], [a_zero, zero], [a_zero, zero, bias], [None, None, bias]):
                yield Case("MatMulIntegerToFloat", [qa, b, a_scale, scale, *more], types=[F])
            c = rng.integers(-900, 900, (4, 5)).astype(np.int32)
            y_scale, y_zero = np.array(0.9, np.float32), np.array(7, signed)
            for trans in (0, 1):
                matrix = np.ascontiguousarray(b.T) if trans else b
                yield Case("QGemm", [qa, a_scale, a_zero, matrix, scale, zero, c], {"transB": trans, "alpha": 0.5}, types=[F])
            if signed == np.uint8:
                yield Case("QGemm", [qa, a_scale, a_zero, b, scale, zero, c, y_scale, y_zero], types=[U8], ulps=1)
    a, b = rng.integers(-30000, 30000, (3, 4)).astype(np.int16), rng.integers(-3000, 3000, (4, 5)).astype(np.int16)
    yield Case("MatMulInteger16", [a, b], types=[I32])


def quantized():
    rng = rng_for("quantized")
    for kind, code in ((np.uint8, U8), (np.int8, S8)):
        info = np.iinfo(kind)
        numbers = lambda *shape: rng.integers(info.min, info.max + 1, shape).astype(kind)
        one = lambda value: np.array(value, np.float32)
        zero = lambda: np.array(rng.integers(info.min // 2, info.max // 2), kind)
        for a, b in ((numbers(2, 3, 4), numbers(2, 3, 4)), (numbers(2, 3, 4), numbers(4)), (numbers(3, 1), numbers(2, 1, 4))):
            yield Case("QLinearAdd", [a, one(0.03), zero(), b, one(0.07), zero(), one(0.1), zero()], types=[code], ulps=1)
            yield Case("QLinearMul", [a, one(0.03), zero(), b, one(0.07), zero(), one(0.2), zero()], types=[code], ulps=1)
            sums = np.clip(np.rint((a.astype(np.float64) * one(0.03) + b * np.float64(one(0.07))) / one(0.1)), info.min, info.max)
            yield Case("QLinearAdd", [a, one(0.03), None, b, one(0.07), None, one(0.1), None], types=[code], expected=[sums.astype(kind)], ulps=1,
                       note="onnxruntime's type inference insists on the optional zero points")
            yield Case("QLinearWhere", [rng.random(np.broadcast(a, b).shape) < 0.5, a, one(0.03), zero(), b, one(0.07), zero(), one(0.1), zero()],
                       types=[code], ulps=1)
        x = numbers(2, 4, 6, 5)
        for op, more in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2})):
            out = one(1 / 256) if op == "QLinearSigmoid" else one(0.05)
            yield Case(op, [x, one(0.04), zero(), out, np.array(info.min, kind)], more, types=[code], ulps=1)
            yield Case(op, [x, one(0.04), None, out, None], more, types=[code], ulps=1)
        for opset, axis in ((13, -1), (13, 1), (11, 1), (11, 2)):
            yield Case("QLinearSoftmax", [x, one(0.04), zero(), one(1 / 256), np.array(info.min, kind)], {"axis": axis, "opset": opset},
                       types=[code], ulps=1)
        parts = [one(0.06), zero(), numbers(2, 3), one(0.03), zero(), numbers(2, 2), one(0.08), zero()]
        yield Case("QLinearConcat", parts, {"axis": 1}, types=[code], ulps=1)
        last = numbers(2, 6, 5, 4)
        for channels_last, image in ((0, x), (1, last)):
            where = {"channels_last": channels_last}
            scales = [one(0.03), zero(), one(0.02), zero()]
            yield Case("QLinearGlobalAveragePool", [image, *scales], where, types=[code], ulps=1)
            for more in ({"kernel_shape": [3, 2]}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
                         {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
                         {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}):
                yield Case("QLinearAveragePool", [image, *scales], {**where, **more}, types=[code], ulps=1)
            w, bias = numbers(6, 4, 3, 3), rng.integers(-500, 500, 6).astype(np.int32)
            yield Case("QLinearConv", [image, one(0.03), zero(), w, one(0.02), np.array(0, kind), one(0.4), zero(), bias],
                       {**where, "pads": [1, 1, 1, 1]}, types=[code], ulps=1)
        y = (x.astype(np.float64) - 3) * 0.03
        for axes, keep in (([1, 3], 1), ([-1], 0)):
            mean = np.clip(np.rint(y.mean(tuple(axes), keepdims=bool(keep)) / 0.02) + 5, info.min, info.max)
            yield Case("QLinearReduceMean", [x, one(0.03), np.array(3, kind), one(0.02), np.array(5, kind)], {"axes": axes, "keepdims": keep},
                       types=[code], expected=[mean.astype(kind)], ulps=1, note="no kernel on the CPU")
        yield Case("NhwcMaxPool", [last], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}, types=[code])
        a, b, za, zb = numbers(3, 4), numbers(4), zero(), zero()
        product = (a.astype(np.int32) - za) * (b.astype(np.int32) - zb)
        yield Case("MulInteger", [a, za, b, zb], types=[I32], expected=[product], note="no kernel on the CPU")
    yield from linear_quantization(rng)


def linear_quantization(rng):
    x = rng.normal(size=(3, 4)).astype(np.float32) * 40
    for kind, code in ((np.uint8, U8), (np.int8, S8), (np.uint16, TensorProto.UINT16), (np.int16, TensorProto.INT16)):
        info = np.iinfo(kind)
        q = rng.integers(info.min, info.max + 1, (3, 4)).astype(kind)
        zero, scale = np.array(3, kind), np.array(0.5, np.float32)
        yield Case("QuantizeLinear", [x, scale, zero], types=[code])
        yield Case("DequantizeLinear", [q, scale, zero], types=[F])
        for axis in (0, 1):
            scales = rng.uniform(0.1, 1, x.shape[axis]).astype(np.float32)
            zeros = rng.integers(0, 9, x.shape[axis]).astype(kind)
            yield Case("QuantizeLinear", [x, scales, zeros], {"axis": axis}, types=[code], ulps=1)
            yield Case("DequantizeLinear", [q, scales, zeros], {"axis": axis}, types=[F])


def tensors():
    rng = rng_for("tensors")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    for kind in (np.float32, np.float64):
        for metric in ("sqeuclidean", "euclidean"):
            yield Case("CDist", [normal(4, 6).astype(kind), normal(5, 6).astype(kind)], {"metric": metric})
        yield Case("Inverse", [normal(2, 5, 5).astype(kind)], tolerance=(1e-3, 1e-3))
    a, b = normal(4, 6).astype(np.float64), normal(5, 6).astype(np.float64)
    distances = {"cityblock": np.abs(a[:, None] - b).sum(-1), "chebyshev": np.abs(a[:, None] - b).max(-1),
                 "cosine": 1 - a @ b.T / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1),
                 "correlation": 1 - np.corrcoef(a, b)[:4, 4:], "canberra": (np.abs(a[:, None] - b) / (np.abs(a[:, None]) + np.abs(b))).sum(-1),
                 "braycurtis": np.abs(a[:, None] - b).sum(-1) / np.abs(a[:, None] + b).sum(-1)}
    for metric, expected in distances.items():
        yield Case("CDist", [a, b], {"metric": metric}, expected=[expected], note="onnxruntime knows two metrics")
    x, y = normal(2, 3, 2), normal(3, 2)
    complex_of = lambda v: v[..., 0] + 1j * v[..., 1]
    parts = lambda v: np.stack([v.real, v.imag], axis=-1)
    yield Case("ComplexMul", [x, y], expected=[parts(complex_of(x) * complex_of(y))], note="no kernel on the CPU")
    yield Case("ComplexMulConj", [x, y], expected=[parts(complex_of(x) * complex_of(y).conj())], note="no kernel on the CPU")
    for axis in (0, 2, -1):
        yield Case("ExpandDims", [x, np.array(axis, np.int32)])
    yield Case("GatherND", [normal(2, 3, 4), np.array([[0, 1], [1, 2]])])
    yield Case("GatherND", [normal(2, 3, 4), np.array([[[1]], [[0]]], np.int32)])
    signal = normal(2, 3, 8)
    spectrum = np.fft.rfft(signal.astype(np.float64))
    yield Case("Rfft", [signal], {"signal_ndim": 1, "normalized": 0, "onesided": 1}, expected=[parts(spectrum)], note="no kernel on the CPU")
    freely = normal(2, 5, 2)
    yield Case("Irfft", [freely], {"signal_ndim": 1}, expected=[np.fft.irfft(complex_of(freely), 8)], note="no kernel on the CPU")
    yield Case("IsAllFinite", [x, np.array([1, np.inf], np.float32)], types=[TensorProto.BOOL], expected=[np.array(False)], note="no kernel on the CPU")
    table, rows = normal(6, 3), np.array([[5, 0], [2, 2]])
    yield Case("TorchEmbedding", [table, rows], expected=[table[rows]], note="no kernel on the CPU")
    for k in (-1, 0, 2):
        for upper in (0, 1):
            yield Case("Trilu", [normal(2, 4, 5), np.array(k, np.int64)], {"upper": upper})
    yield Case("Unique", [np.array([2.0, 1, 1, 3, 4, 3], np.float32)], None, 3, types=[F, I, I])


def gather_quantized():
    rng = rng_for("gather quantized")
    for bits in (2, 4, 8):
        data = rng.integers(0, 256, (6, 32 * bits // 8)).astype(np.uint8)
        scales = rng.uniform(0.1, 1, (6, 2)).astype(np.float32)
        zeros = rng.integers(0, 256, (6, -(-2 * bits // 8))).astype(np.uint8)
        for indices in (np.array([[5, 0], [2, -1]]), np.array(3)):
            options = {"bits": bits, "block_size": 16}
            yield Case("GatherBlockQuantized", [data, indices, scales], options, types=[F])
            yield Case("GatherBlockQuantized", [data, indices, scales, zeros], options, types=[F])
    far = np.array([1, 9, -7])
    rows = (data[[1, 0, 0]].astype(np.float64) - 128) * np.repeat(scales[[1, 0, 0]], 16, 1) * np.array([[1], [0], [0]])
    yield Case("GatherBlockQuantized", [data, far, scales], {"bits": 8, "block_size": 16}, types=[F], expected=[rows],
               note="the page: zeros for an index out of range")


def experts():
    rng = rng_for("experts")
    normal = lambda *shape: (rng.normal(size=shape) * 0.5).astype(np.float32)
    tokens, hidden, inner, count = 5, 8, 6, 4
    x, router = normal(tokens, hidden), normal(tokens, count)
    w1, w2, w3 = normal(count, inner, hidden), normal(count, hidden, inner), normal(count, inner, hidden)
    b1, b2 = normal(count, inner), normal(count, hidden)

    def answer(k, normalize, hidden_of):
        p = np.exp(router.astype(np.float64))
        p /= p.sum(-1, keepdims=True)
        result = np.zeros((tokens, hidden))
        for t in range(tokens):
            best = np.argsort(-p[t], kind="stable")[:k]
            for e in best:
                result[t] += p[t, e] / (p[t, best].sum() if normalize else 1) * (w2[e] @ hidden_of(e, x[t].astype(np.float64)) + b2[e])
        return result

    functions = {"relu": lambda v: np.maximum(v, 0), "silu": lambda v: v / (1 + np.exp(-v)), "gelu": gelu, "identity": lambda v: v}
    for name, function in functions.items():
        for k, normalize in ((1, 0), (2, 1)):
            expected = answer(k, normalize, lambda e, v: function(w1[e] @ v + b1[e]))
            yield Case("MoE", [x, router, w1, b1, w2, b2], {"k": k, "normalize_routing_weights": normalize, "activation_type": name},
                       expected=[expected] if name == "gelu" else None, note="the CPU kernel's gelu is the tanh approximation" * (name == "gelu"))
    fused, bias = normal(count, 2 * inner, hidden), normal(count, 2 * inner)

    def swiglu(g, l):
        g, l = np.minimum(g, 0.75), np.clip(l, -0.75, 0.75)
        return g / (1 + np.exp(-1.5 * g)) * (l + 0.5)

    options = {"k": 2, "activation_type": "swiglu", "activation_alpha": 1.5, "activation_beta": 0.5, "swiglu_limit": 0.75}
    for fusion in (1, 2):
        take = (lambda y: (y[0::2], y[1::2])) if fusion == 1 else (lambda y: np.split(y, 2))
        expected = answer(2, False, lambda e, v: swiglu(*take(fused[e] @ v + bias[e])))
        yield Case("MoE", [x, router, fused, bias, w2, b2], {**options, "swiglu_fusion": fusion}, expected=[expected])
    yield Case("MoE", [x, router, fused, bias, w2, b2], {**options, "swiglu_fusion": 1})
    expected = answer(2, False, lambda e, v: swiglu(w1[e] @ v + b1[e], w3[e] @ v))
    yield Case("MoE", [x, router, w1, b1, w2, b2, w3], options, expected=[expected])


def gates():
    rng = rng_for("gates")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    x, y, gate = normal(2, 3, 8), normal(2, 3, 8), normal(2, 3, 1)
    wide = x.astype(np.float64)
    why = "no kernel on the CPU"
    yield Case("GatedAdd", [x, y, gate], expected=[wide + y * gate], note=why)
    norm = lambda v: v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-5)
    scale = normal(4)
    normed = norm(wide.reshape(2, 3, 2, 4)) * scale
    for name, function in (("silu", lambda v: v / (1 + np.exp(-v))), ("sigmoid", lambda v: 1 / (1 + np.exp(-v)))):
        yield Case("GatedRMSNorm", [x, scale, y], {"activation": name}, expected=[normed.reshape(2, 3, 8) * function(y.astype(np.float64))], note=why)
    yield Case("BranchwiseRMSNorm", [x, scale], {"num_branches": 2}, expected=[normed.reshape(2, 3, 8)], note=why)
    yield Case("BranchwiseRMSNorm", [x, normal(3, 8) * 0 + 2], expected=[2 * norm(wide)], note=why)
    yield Case("ScaledSiLU", [x], {"alpha": 1.5}, expected=[1.5 * wide / (1 + np.exp(-1.5 * wide))], note=why)
    b = rng.integers(0, 256, (2, 6, 1, 16)).astype(np.uint8)
    scales = rng.uniform(0.05, 0.1, (2, 6, 1)).astype(np.float32)
    a, skip, factor = normal(3, 32), normal(3, 32), normal(32)
    weights = (np.stack([b & 15, b >> 4], -1).reshape(2, 6, 32) - 8.0) * scales
    after = norm(a.astype(np.float64) + skip) * factor
    up, gated = after @ weights[1].T, after @ weights[0].T
    options = {"K": 32, "N": 6, "bits": 4, "block_size": 32}
    inputs = [a, skip, factor, b[0], scales[0], None, b[1], scales[1], None]
    yield Case("MatMulNBitsMlp", inputs[:8], {**options, "activation": "silu"}, 2, types=[F, F],
               expected=[gated / (1 + np.exp(-gated)) * up, a + skip], note=why)
    options = {"K": 32, "Nq": 6, "Nkv": 6, "bits": 4, "block_size": 32, "epsilon": 1e-5}
    bias = normal(6)
    yield Case("MatMulNBitsQkv", [*inputs[:5], bias, b[1], scales[1], None, b[0], scales[0]], options, 4, types=[F] * 4,
               expected=[gated + bias, up, gated, a + skip], note=why)


def positions():
    rng = rng_for("positions")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)

    for both in (0, 1):
        table = normal(16, 3)
        by_head = table.ravel().reshape(3, 16)
        expected = [[[by_head[h, bucket(k - q, 16, 37, both)] for k in range(11)] for q in range(11)] for h in range(3)]
        yield Case("RelativePositionBias", [table, np.array(11), np.array(11)], {"max_distance": 37, "is_bidirectional": both},
                   expected=[np.array([expected])], note="no kernel on the CPU")
    q, qb, rel, w, wb, eco = normal(2, 3, 8), normal(8), normal(1, 2, 3, 3), normal(4, 6), normal(6), normal(1, 2, 1, 1)
    heads = (q.astype(np.float64) + qb).reshape(2, 3, 2, 4).transpose(0, 2, 1, 3)
    u, r = np.split(1 / (1 + np.exp(-(heads @ w + wb).reshape(2, 2, 3, 2, 3).sum(-1))), 2, axis=-1)
    yield Case("GatedRelativePositionBias", [q, qb, rel, w, wb, eco], {"num_heads": 2}, expected=[(u * (r * eco - 1) + 2) * rel],
               note="no kernel on the CPU")
    ids = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]])
    yield Case("NGramRepeatBlock", [ids, normal(2, 6)], {"ngram_size": 3}, types=[F])
    quantized = lambda *shape: rng.integers(0, 256, shape).astype(np.uint8)
    tables = [quantized(9, 8), quantized(5, 8), quantized(2, 8), quantized(8), quantized(8)]
    scales, zeros = [np.array(v, np.float32) for v in (0.01, 0.02, 0.03, 0.04, 0.05)], [np.array(v, np.uint8) for v in (120, 130, 125, 100, 128)]
    ids, kinds, mask = rng.integers(0, 9, (2, 4)).astype(np.int32), rng.integers(0, 2, (2, 4)).astype(np.int32), np.ones((2, 4), np.int32)
    mask[0, 2:] = 0
    yield Case("QEmbedLayerNormalization", [ids, kinds, *tables, mask, *scales, *zeros], {"epsilon": 1e-6}, 2, types=[F, I32])


def borrowed():
    rng = rng_for("borrowed")
    normal = lambda *shape: rng.normal(size=shape).astype(np.float32)
    x = normal(3, 4)
    for mode in ("constant", "reflect", "edge"):
        yield Case("Pad", [x, np.array([1, 0, 0, 2])], {"mode": mode})
        yield Case("Pad", [x, np.array([[1, 0, 0, 2]]), np.array([2.5], np.float32)], {"mode": mode})
    yield Case("Range", [np.array(1.5, np.float32), np.array(4, np.float32)])
    yield Case("Range", [np.array([2]), np.array([11]), np.array([4])], types=[I])
    image, grid = normal(2, 3, 4, 5), rng.uniform(-1.2, 1.2, (2, 3, 3, 2)).astype(np.float32)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                yield Case("GridSample", [image, grid], {"mode": mode, "padding_mode": padding, "align_corners": align}, tolerance=(1e-3, 1e-4))
    q = rng.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    yield Case("ReduceSumInteger", [q], {"axes": [0, 2], "keepdims": 1}, types=[TensorProto.UINT32], expected=[q.sum((0, 2), keepdims=True)],
               note="no kernel on the CPU")
    slices = np.stack([x[:, s : s + 2] for s in (0, 2)], axis=1)
    yield Case("UnfoldTensor", [x], {"dim": 1, "size": 2, "step": 2}, expected=[slices])
    boxes, of = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], [-0.2, 0.3, 0.6, 1.4], [0.7, 0.8, 0.2, 0.1]], np.float32), np.array([0, 1, 0, 1], np.int32)
    for mode in ("bilinear", "nearest"):
        for size in ([3, 4], [1, 2]):
            yield Case("CropAndResize", [image, boxes, of, np.array(size, np.int32)], {"mode": mode, "extrapolation_value": 0.5})
    yield Case("SampleOp", [x])


def cases():
    for family in (activations, products, convolutions, normalizations, quantized_products, quantized, tensors, gather_quantized, experts, gates,
                   positions, borrowed):
        yield from family()
    yield from node_cases_attention.cases()
