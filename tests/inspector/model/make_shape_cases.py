#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes shape_cases.txt next to this file: single nodes with the output types that onnx.shape_inference gives them.

    python3 -m venv build/schemas && build/schemas/bin/pip install onnx
    build/schemas/bin/python tests/inspector/model/make_shape_cases.py

A case is `Op-opset | inputs | attributes`; the written line adds `| outputs`. An input is `dtype[dims]`, with `={values}` for
an initializer, or `-` where it is omitted. Dimensions are numbers, names or `?`.
"""

import re
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

ELEMENTS = {
    "float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE, "int64": TensorProto.INT64,
    "int32": TensorProto.INT32, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL,
    "string": TensorProto.STRING,
}
NAMES = {number: name for name, number in ELEMENTS.items()}

CASES = Path(__file__).with_name("shape_case_list.txt")


def dim_of(text):
    return None if text == "?" else int(text) if re.fullmatch(r"-?\d+", text) else text


def parse_input(text, index, graph):
    """Adds one input to the graph's inputs or initializers and returns its name."""
    if text == "-":
        return ""
    name = f"x{index}"
    dtype, dims, values = re.fullmatch(r"(\w+)(\[.*?\]|)(?:=\{(.*)\})?", text).groups()
    shape = [dim_of(dim) for dim in dims[1:-1].split(",") if dim]
    if values is None:
        graph["inputs"].append(helper.make_tensor_value_info(name, ELEMENTS[dtype], shape if dims else None))
    else:
        numbers = [parse_scalar(value) for value in values.split(",") if value]
        array = numpy.array(numbers, helper.tensor_dtype_to_np_dtype(ELEMENTS[dtype])).reshape(shape)
        graph["initializers"].append(numpy_helper.from_array(array, name))
    return name


def parse_scalar(text):
    if text.startswith('"'):
        return text[1:-1]
    return float(text) if "." in text else int(text)


def parse_attributes(text):
    attributes = {}
    for item in text.split():
        name, value = item.split("=", 1)
        is_list = value.startswith("[")
        attributes[name] = [parse_scalar(one) for one in value[1:-1].split(",") if one] if is_list else parse_scalar(value)
    return attributes


def type_text(value):
    if not value.type.HasField("tensor_type") or value.type.tensor_type.elem_type not in NAMES:
        return "?"
    tensor = value.type.tensor_type
    text = NAMES[tensor.elem_type]
    if not tensor.HasField("shape"):
        return text
    dims = []
    for dim in tensor.shape.dim:
        generated = dim.dim_param.startswith("unk__")
        dims.append(str(dim.dim_value) if dim.HasField("dim_value") else "?" if generated or not dim.dim_param else dim.dim_param)
    return f"{text}[{','.join(dims)}]"


def expected(case):
    op, inputs, attributes = [part.strip() for part in case.split("|")][:3]
    op, opset = op.rsplit("-", 1)
    op, outputs = op.split(":") if ":" in op else (op, 1)
    graph = {"inputs": [], "initializers": []}
    names = [parse_input(text, index, graph) for index, text in enumerate(inputs.split())]
    results = [f"y{index}" for index in range(int(outputs))]
    node = helper.make_node(op, names, results, **parse_attributes(attributes))
    made = helper.make_graph([node], "case", graph["inputs"], [], graph["initializers"])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", int(opset))])
    inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    known = {value.name: value for value in inferred.graph.value_info}
    return " ".join(type_text(known[name]) if name in known else "?" for name in results)


def main():
    lines = [f"# Written by make_shape_cases.py with onnx {onnx.__version__} from shape_case_list.txt."]
    for line in CASES.read_text().splitlines():
        if line and not line.startswith("#"):
            try:
                lines.append(f"{line} | {expected(line)}")
            except Exception as error:
                raise SystemExit(f"{line}\n{error}") from error
    Path(__file__).with_name("shape_cases.txt").write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 1} cases")


if __name__ == "__main__":
    main()
