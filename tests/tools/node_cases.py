# SPDX-License-Identifier: Apache-2.0
"""One-node models with random inputs: what compare_nodes.py makes of a line of node_cases_ml.py and node_cases_microsoft.py."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = {"": 17, "ai.onnx.ml": 3, "com.microsoft": 1}


class Case:
    """An operator, its inputs (arrays, None where one is left out, dictionaries for maps), attributes and number of outputs.

    `tolerance` is (rtol, atol); integers may differ by `ulps` (quantized outputs: a tie may fall to either side). `expected` stands in
    for the peer where onnxruntime has no kernel on the CPU or is known to be wrong: a list of arrays, None for an output not judged.
    `mask` maps an output to a mask of the rows to be judged: the operator leaves the others undefined."""

    def __init__(self, op, inputs, attributes=None, outputs=1, domain="com.microsoft", version=None, types=None, tolerance=(1e-4, 1e-5),
                 ulps=0, expected=None, mask=None, optional_outputs=(), note=""):
        self.op, self.inputs, self.attributes, self.outputs = op, inputs, dict(attributes or {}), outputs
        self.domain, self.version, self.types = domain, version or OPSETS[domain], types
        self.tolerance, self.ulps, self.expected, self.mask = tolerance, ulps, expected, mask
        self.optional_outputs, self.note = optional_outputs, note

    def model(self):
        names = [f"input_{k}" if value is not None else "" for k, value in enumerate(self.inputs)]
        outputs = ["" if k in self.optional_outputs else f"output_{k}" for k in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, domain=self.domain, **self.attributes)
        inputs = [value_info(name, value) for name, value in zip(names, self.inputs) if value is not None]
        types = self.types or [onnx_type(next(v for v in self.inputs if v is not None))] * self.outputs
        results = [output_info(name, kind) for name, kind in zip(outputs, types) if name]
        graph = helper.make_graph([node], "case", inputs, results)
        imports = [helper.make_opsetid("", 17)]
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, self.version))
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    def feeds(self):
        return {f"input_{k}": value for k, value in enumerate(self.inputs) if value is not None}


def onnx_type(value):
    if value.dtype.kind in "OU":
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(value.dtype)


def value_info(name, value):
    if isinstance(value, dict):
        key, item = next(iter(value.items()))
        kind = TensorProto.STRING if isinstance(key, str) else TensorProto.INT64
        element = TensorProto.STRING if isinstance(item, str) else TensorProto.INT64 if isinstance(item, int) else TensorProto.FLOAT
        inner = helper.make_tensor_type_proto(element, [])
        inner.tensor_type.ClearField("shape")
        return helper.make_value_info(name, helper.make_map_type_proto(kind, inner))
    return helper.make_tensor_value_info(name, onnx_type(value), list(value.shape))


def output_info(name, kind):
    if isinstance(kind, onnx.TypeProto):
        return helper.make_value_info(name, kind)
    return helper.make_tensor_value_info(name, kind, None)


def map_proto(value):
    message = onnx.MapProto()
    keys, items = list(value), list(value.values())
    if isinstance(keys[0], str):
        message.key_type = TensorProto.STRING
        message.string_keys.extend(key.encode() for key in keys)
    else:
        message.key_type = TensorProto.INT64
        message.keys.extend(keys)
    kind = np.object_ if isinstance(items[0], str) else np.int64 if isinstance(items[0], int) else np.float32
    message.values.elem_type = onnx.SequenceProto.TENSOR
    for item in items:
        message.values.tensor_values.append(numpy_helper.from_array(np.array(item, kind)))
    return message


def write_feeds(case, folder):
    for index, (name, value) in enumerate(case.feeds().items()):
        message = map_proto(value) if isinstance(value, dict) else numpy_helper.from_array(value)
        message.name = name
        (folder / f"input_{index}.pb").write_bytes(message.SerializeToString())


def peer_outputs(case):
    """The outputs of onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(case.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, case.feeds())


def rng_for(text):
    """A generator of its own for each family, so that a new case does not move the numbers of the others."""
    return np.random.default_rng(list(text.encode()))
