# SPDX-License-Identifier: Apache-2.0
"""Other implementations of ONNX, and when two results agree."""
import ctypes

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from .case import NAMES, TYPES, Map, Opt, Seq, attribute_tensor

onnxruntime.set_default_logger_severity(4)

# Relative and, to the largest magnitude, absolute: what healthy implementations may differ by.
CLOSE = {"float64": (1e-9, 1e-11), "float32": (2e-5, 2e-6), "float16": (2e-3, 1e-3), "bfloat16": (1e-2, 8e-3),
         "complex64": (2e-5, 2e-6), "complex128": (1e-9, 1e-11)}


def plain(value):
    """Inputs that both peers take: arrays and lists."""
    if isinstance(value, Seq):
        return [plain(item) for item in value.items]
    if isinstance(value, Opt):
        return None if value.item is None else plain(value.item)
    if isinstance(value, Map):
        return {key.item() if hasattr(key, "item") else key: item.item() for key, item in zip(value.keys, value.items)}
    return value


def run_evaluator(model, inputs):
    session = ReferenceEvaluator(model)
    with np.errstate(all="ignore"):
        return session.run(None, {i.name: plain(v) for i, v in zip(model.graph.input, inputs)})


def run_onnxruntime(model, inputs):
    model, inputs = _with_packed_constants(model, inputs)
    session = _session(model)
    packed = {o.name: PACKED[o.type] for o in session.get_outputs() if o.type in PACKED}
    if packed:
        model = _with_wide_outputs(model, packed)
        session = _session(model)
    is_tensors = all(o.type.startswith("tensor(") and o.type != "tensor(string)" for o in session.get_outputs())
    if is_tensors and all(isinstance(v, np.ndarray) and v.dtype != object for v in inputs):
        feeds = {i.name: _ort_value(v) for i, v in zip(model.graph.input, inputs)}
        results = [_from_ort(v) for v in session.run_with_ort_values(None, feeds)]
    else:
        results = session.run(None, {i.name: plain(v) for i, v in zip(model.graph.input, inputs)})
    for k, info in enumerate(model.graph.output):
        if info.name.startswith("wide_"):
            results[k] = results[k].astype(TYPES[packed[info.name[5:]]][0])
    return results


# Element types that onnxruntime neither takes from numpy nor gives to it.
PACKED = {f"tensor({name})": name for name in ("int4", "uint4", "int2", "uint2", "float4e2m1")}


def _session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _with_packed_constants(model, inputs):
    """Packed inputs as initializers."""
    is_packed = [isinstance(v, np.ndarray) and v.dtype != object and NAMES[v.dtype] in PACKED.values() for v in inputs]
    if not any(is_packed):
        return model, inputs
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.input[:]
    for info, value, packed in zip(model.graph.input, inputs, is_packed):
        if packed:
            changed.graph.initializer.add().CopyFrom(attribute_tensor(value))
            changed.graph.initializer[-1].name = info.name
        else:
            changed.graph.input.add().CopyFrom(info)
    return changed, [v for v, packed in zip(inputs, is_packed) if not packed]


def _with_wide_outputs(model, packed):
    """Packed outputs as int32 (float4 as float32)."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for info in changed.graph.output:
        if info.name in packed:
            to = onnx.TensorProto.FLOAT if packed[info.name] == "float4e2m1" else onnx.TensorProto.INT32
            changed.graph.node.append(onnx.helper.make_node("Cast", [info.name], ["wide_" + info.name], to=to))
            info.CopyFrom(onnx.ValueInfoProto(name="wide_" + info.name))
    return changed


def _ort_value(value):
    name = NAMES[value.dtype]
    if TYPES[name][0].__module__ == "numpy":
        return onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(value, order="C"))
    raw = np.asarray(value, order="C").view(np.uint16 if name == "bfloat16" else np.uint8)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, TYPES[name][1])


def _from_ort(value):
    if not value.is_tensor():
        return value.to_numpy() if hasattr(value, "to_numpy") else value.numpy()
    names = {"tensor(bfloat16)": "bfloat16", "tensor(float8e4m3fn)": "float8e4m3fn", "tensor(float8e4m3fnuz)": "float8e4m3fnuz",
             "tensor(float8e5m2)": "float8e5m2", "tensor(float8e5m2fnuz)": "float8e5m2fnuz"}
    kind = value.data_type()
    if kind in names:
        numpy = np.dtype(TYPES[names[kind]][0])
        count = int(np.prod(value.shape()))
        raw = ctypes.string_at(value.data_ptr(), count * numpy.itemsize)
        return np.frombuffer(raw, numpy).reshape(value.shape())
    return value.numpy()


PEERS = {"ReferenceEvaluator": run_evaluator, "onnxruntime": run_onnxruntime}


def as_value(raw, like=None):
    """A peer's result as a value of a case; `like` tells what plain lists leave open."""
    if isinstance(raw, (Seq, Opt, Map)):
        return raw
    if isinstance(like, Opt):
        return Opt(None if raw is None else as_value(raw), like.element)
    if isinstance(like, Map) or isinstance(raw, dict):
        return Map(np.array(list(raw), object if isinstance(next(iter(raw)), str) else np.int64),
                   [np.float32(v) if isinstance(v, float) else np.array(v) for v in raw.values()])
    if isinstance(raw, list):
        items = [as_value(item) for item in raw]
        return Seq(items, like.element if isinstance(like, Seq) else None)
    array = np.asarray(raw)
    return array.astype(object) if array.dtype.kind in "US" else array


def agree(a, b):
    """None, or how they differ."""
    if isinstance(a, (Seq, Map)):
        if type(a) is not type(b) or len(a.items) != len(b.items):
            return "not sequences or maps of equal length"
        if isinstance(a, Map) and list(a.keys) != list(b.keys):
            return "other keys"
        return next((found for x, y in zip(a.items, b.items) if (found := agree(x, y))), None)
    if isinstance(a, Opt):
        b_item = b.item if isinstance(b, Opt) else b
        return agree(a.item, b_item) if a.item is not None and b_item is not None else (None if a.item is b_item else "one is empty")
    if not isinstance(b, np.ndarray):
        return f"no tensor: {type(b).__name__}"
    if a.dtype != b.dtype:
        return f"{a.dtype} and {b.dtype}"
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}"
    name = NAMES[a.dtype]
    if name not in CLOSE:
        as_number = (lambda x: x) if a.dtype.kind in "iubO" else (lambda x: x.astype(np.float64))
        same = np.array_equal(as_number(a), as_number(b), **({} if a.dtype.kind in "iubO" else {"equal_nan": True}))
        return None if same else f"{a.ravel()[:8]} and {b.ravel()[:8]}"
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    rtol, to_largest = CLOSE[name]
    finite = np.abs(x[np.isfinite(x)])
    atol = to_largest * (finite.max() if finite.size else 1)
    if np.allclose(y, x, rtol=rtol, atol=atol, equal_nan=True):
        return None
    return f"{x.ravel()[:8]} and {y.ravel()[:8]}"
