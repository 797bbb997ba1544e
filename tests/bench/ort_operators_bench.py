#!/usr/bin/env python3
"""One operator at a time beside PyPI onnxruntime: where an operator falls far behind, a model of them will, too.

Usage: ort_operators_bench.py PARALLAX [--threads N] [--only NAME]

Needs numpy, onnx and onnxruntime. A ratio is onnxruntime's time over ours, of medians: above 1 we are faster. The worst
come first.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ort_bench  # noqa: E402

RANDOM = np.random.default_rng(0)
MICROSOFT = "com.microsoft"


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def below(limit, *shape, dtype=np.int64):
    return RANDOM.integers(0, limit, shape).astype(dtype)


def ints(*values):
    return np.array(values, np.int64)


def small(shape):
    return np.clip(normal(*shape), -0.99, 0.99)


FLAT, IMAGE, PLANE = (512, 1024), (1, 64, 56, 56), (256, 1024)
WEIGHTS = below(200, 512, 512, dtype=np.int8)
NIBBLES = {"w": below(200, 2048, 64, 16, dtype=np.uint8), "s": normal(2048 * 64)}
SCALES = {"resize_roi": np.zeros(0, np.float32), "resize_scales": np.array([1, 1, 2, 2], np.float32)}


def quantised(weights):
    """Scale and zero point of x, then the weights and theirs, then those of the result."""
    return {"x_scale": np.float32(0.02), "x_zero": np.uint8(3), "w": weights, "w_scale": np.float32(0.02),
            "w_zero": np.int8(0), "y_scale": np.float32(1), "y_zero": np.uint8(100)}


def recurrent(gates, length, batch):
    """X, then weights for 256 inputs and 256 hidden numbers."""
    return ({"x": normal(length, batch, 256)},
            {"w": normal(1, gates * 256, 256), "r": normal(1, gates * 256, 256), "b": normal(1, gates * 512)},
            {"hidden_size": 256})


# Name: operator, inputs, constants, attributes, and what is not of ai.onnx 17 with one output.
CASES = {
    "MaxPool": ("MaxPool", {"x": normal(1, 64, 112, 112)}, {}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
    "AveragePool": ("AveragePool", {"x": normal(1, 64, 112, 112)}, {}, {"kernel_shape": [3, 3], "strides": [2, 2]}),
    "GlobalAveragePool": ("GlobalAveragePool", {"x": normal(1, 512, 56, 56)}, {}, {}),
    "Resize linear": ("Resize", {"x": normal(1, 32, 64, 64)}, SCALES, {"mode": "linear"}),
    "Resize nearest": ("Resize", {"x": normal(1, 32, 64, 64)}, SCALES, {"mode": "nearest"}),
    "Resize cubic": ("Resize", {"x": normal(1, 8, 64, 64)}, SCALES, {"mode": "cubic"}),
    "TopK 10": ("TopK", {"x": normal(64, 4096)}, {"k": ints(10)}, {}, {"outputs": 2}),
    "TopK all": ("TopK", {"x": normal(16, 4096)}, {"k": ints(4096)}, {}, {"outputs": 2}),
    "CumSum rows": ("CumSum", {"x": normal(*PLANE)}, {"axis": np.int64(1)}, {}),
    "CumSum columns": ("CumSum", {"x": normal(*PLANE)}, {"axis": np.int64(0)}, {}),
    "Gather": ("Gather", {"x": normal(5000, 512)}, {"i": below(5000, 512)}, {}),
    "GatherElements": ("GatherElements", {"x": normal(512, 512)}, {"i": below(512, 512, 512)}, {"axis": 1}),
    "GatherND": ("GatherND", {"x": normal(512, 512)}, {"i": below(512, 4096, 2)}, {}),
    "ScatterND": ("ScatterND", {"x": normal(512, 512)}, {"i": below(512, 400, 1), "u": normal(400, 512)}, {}),
    "ReduceSum last": ("ReduceSum", {"x": normal(1024, 1024)}, {"axes": ints(1)}, {}),
    "ReduceSum first": ("ReduceSum", {"x": normal(1024, 1024)}, {"axes": ints(0)}, {}),
    "ReduceMax middle": ("ReduceMax", {"x": normal(64, 128, 128)}, {}, {"axes": [1]}),
    "ReduceMean planes": ("ReduceMean", {"x": normal(8, 64, 56, 56)}, {}, {"axes": [2, 3]}),
    "ArgMax": ("ArgMax", {"x": normal(256, 4096)}, {}, {"axis": 1}),
    "Transpose": ("Transpose", {"x": normal(16, 128, 256)}, {}, {"perm": [0, 2, 1]}),
    "Concat": ("Concat", {"x": normal(64, 4096), "y": normal(64, 4096)}, {}, {"axis": 1}),
    "Slice": ("Slice", {"x": normal(64, 128, 128)}, {"s": ints(0), "e": ints(128), "a": ints(1), "t": ints(2)}, {}),
    "Pad": ("Pad", {"x": normal(8, 32, 64, 64)}, {"pads": ints(0, 0, 1, 1, 0, 0, 1, 1)}, {}),
    "Expand": ("Expand", {"x": normal(64, 1, 256)}, {"shape": ints(64, 64, 256)}, {}),
    "Where": ("Where", {"c": below(2, *FLAT, dtype=bool), "x": normal(*FLAT), "y": normal(*FLAT)}, {}, {}),
    "Add": ("Add", {"x": normal(*FLAT), "y": normal(1024)}, {}, {}),
    "Add float16": ("Add", {"x": normal(*FLAT).astype(np.float16), "y": normal(*FLAT).astype(np.float16)}, {}, {}),
    "Div int64": ("Div", {"x": below(999, *FLAT), "y": below(999, *FLAT) + 1}, {}, {}),
    "Clip": ("Clip", {"x": normal(*FLAT)}, {"low": np.float32(-0.5), "high": np.float32(0.5)}, {}),
    "PRelu": ("PRelu", {"x": normal(*IMAGE)}, {"slope": normal(64, 1, 1)}, {}),
    "Greater": ("Greater", {"x": normal(*FLAT), "y": normal(*FLAT)}, {}, {}),
    "Trilu": ("Trilu", {"x": normal(512, 512)}, {}, {}),
    "Softmax rows": ("Softmax", {"x": normal(*PLANE)}, {}, {"axis": 1}),
    "Softmax columns": ("Softmax", {"x": normal(*PLANE)}, {}, {"axis": 0}),
    "LayerNormalization": ("LayerNormalization", {"x": normal(256, 768)}, {"s": normal(768), "b": normal(768)}, {}),
    "InstanceNormalization": ("InstanceNormalization", {"x": normal(*IMAGE)}, {"s": normal(64), "b": normal(64)}, {}),
    "LRN": ("LRN", {"x": normal(*IMAGE)}, {}, {"size": 5}),
    "Conv of one axis": ("Conv", {"x": normal(1, 128, 1000)}, {"w": normal(128, 128, 3)}, {"pads": [1, 1]}),
    "Conv of three axes": ("Conv", {"x": normal(1, 16, 16, 32, 32)}, {"w": normal(32, 16, 3, 3, 3)}, {"pads": [1] * 6}),
    "Conv in groups": ("Conv", {"x": normal(1, 128, 28, 28)}, {"w": normal(128, 4, 3, 3)}, {"pads": [1] * 4, "group": 32}),
    "ConvTranspose": ("ConvTranspose", {"x": normal(1, 64, 28, 28)}, {"w": normal(64, 64, 4, 4)}, {"strides": [2, 2]}),
    "MatMul batched": ("MatMul", {"x": normal(32, 128, 64), "y": normal(32, 64, 128)}, {}, {}),
    "MatMul one row": ("MatMul", {"x": normal(1, 1024)}, {"w": normal(1024, 1024)}, {}),
    "MatMul float16": ("MatMul", {"x": normal(128, 512).astype(np.float16)}, {"w": normal(512, 512).astype(np.float16)}, {}),
    "Gemm": ("Gemm", {"x": normal(64, 512)}, {"w": normal(512, 512), "b": normal(512)}, {"transB": 1}),
    "Einsum": ("Einsum", {"x": normal(8, 64, 128), "y": normal(8, 128, 64)}, {}, {"equation": "bij,bjk->bik"}),
    "LSTM": ("LSTM", *recurrent(4, 64, 1)),
    "LSTM of 16": ("LSTM", *recurrent(4, 32, 16)),
    "GRU": ("GRU", *recurrent(3, 64, 1)),
    "MatMulInteger": ("MatMulInteger", {"x": below(200, 128, 512, dtype=np.uint8)}, {"w": WEIGHTS}, {}),
    "QLinearMatMul": ("QLinearMatMul", {"x": below(200, 128, 512, dtype=np.uint8)}, quantised(WEIGHTS), {}),
    "QLinearConv": ("QLinearConv", {"x": below(200, *IMAGE, dtype=np.uint8)},
                    quantised(below(100, 64, 64, 3, 3, dtype=np.int8)), {"pads": [1] * 4}),
    "ConvInteger": ("ConvInteger", {"x": below(200, *IMAGE, dtype=np.uint8)},
                    {"w": below(100, 64, 64, 3, 3, dtype=np.uint8), "x_zero": np.uint8(3)}, {"pads": [1] * 4}),
    "DynamicQuantizeLinear": ("DynamicQuantizeLinear", {"x": normal(*PLANE)}, {}, {}, {"outputs": 3}),
    "QuantizeLinear": ("QuantizeLinear", {"x": normal(*PLANE)}, {"s": np.float32(0.02), "z": np.uint8(3)}, {}),
    "DequantizeLinear": ("DequantizeLinear", {"x": below(200, *PLANE, dtype=np.uint8)},
                         {"s": np.float32(0.02), "z": np.uint8(3)}, {}),
    **{f"MatMulNBits {rows} rows": ("MatMulNBits", {"x": normal(rows, 2048)}, NIBBLES,
                                    {"K": 2048, "N": 2048, "bits": 4, "block_size": 32}, {"domain": MICROSOFT})
       for rows in (1, 128)},
    "Cast to float16": ("Cast", {"x": normal(*FLAT)}, {}, {"to": onnx.TensorProto.FLOAT16}),
    "GridSample": ("GridSample", {"x": normal(1, 32, 64, 64), "g": small((1, 64, 64, 2))}, {}, {}),
    "DepthToSpace": ("DepthToSpace", {"x": normal(1, 64, 64, 64)}, {}, {"blocksize": 2}),
    "NonZero": ("NonZero", {"x": below(2, 512, 512, dtype=np.float32)}, {}, {}),
    "Unique": ("Unique", {"x": below(1000, 100000)}, {}, {}),
    "DFT": ("DFT", {"x": normal(16, 512, 1)}, {}, {"axis": 1}),
    "RoiAlign": ("RoiAlign", {"x": normal(*IMAGE), "r": np.abs(normal(64, 4)) * 10, "b": np.zeros(64, np.int64)}, {},
                 {"output_height": 7, "output_width": 7, "sampling_ratio": 2}),
    **{op: (op, {"x": small(FLAT)}, {}, {}, {"opset": 20}) for op in
       ("Erf", "Exp", "Sin", "Cos", "Tan", "Acos", "Atan", "Sinh", "Tanh", "Sigmoid", "Softplus", "Relu", "Abs", "Floor",
        "Round", "Elu", "Gelu", "HardSwish", "Mish")},
}


def make_model(op, inputs, constants, attributes, special):
    names = [*inputs, *constants]
    if op == "Resize":
        names = ["x", *SCALES]
    outputs = [f"y{index}" for index in range(special.get("outputs", 1))]
    domain = special.get("domain", "")
    graph = helper.make_graph(
        [helper.make_node(op, names, outputs, domain=domain, **attributes)], "operator",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)
         for name, data in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in constants.items()])
    opsets = [helper.make_opsetid("", special.get("opset", 17)), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    if not domain:
        return onnx.shape_inference.infer_shapes(model)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(outputs[0], onnx.TensorProto.FLOAT, None))
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PARALLAX")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path, data = pathlib.Path(folder) / "model.onnx", pathlib.Path(folder) / "inputs.npz"
        for name, (op, inputs, constants, attributes, *special) in CASES.items():
            if arguments.only not in name:
                continue
            onnx.save(make_model(op, inputs, constants, attributes, special[0] if special else {}), str(path))
            np.savez(data, **inputs)
            times = ort_bench.ort_times(ort_bench.ort_session(path, arguments.threads), inputs, 0.25)
            theirs = statistics.median(times)
            ours = ort_bench.our_times(arguments.program, path, ["--inputs", str(data)], arguments.threads,
                                       max(5, min(500, len(times))))["latency_ms"]["median"]
            rows.append((theirs / ours, name, theirs, ours))
    print(f"onnxruntime {ort.__version__}, {arguments.threads} threads")
    print(f"{'operator':<24} {'ort ms':>10} {'ours ms':>10} {'ratio':>7}")
    for ratio, name, theirs, ours in sorted(rows):
        print(f"{name:<24} {theirs:10.3f} {ours:10.3f} {ratio:7.2f}")


if __name__ == "__main__":
    main()
