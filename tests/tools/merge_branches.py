#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins two models of one interface into one with an If: a decoder's first step and its later steps, as deployments do.

    merge_branches.py --condition use_cache_branch --then decoder_with_past/model.onnx --else decoder/model.onnx -o merged/model.onnx

The condition is a bool input of shape [1]. Both branches read the joined inputs from outside; initializers that are equal in
both are kept once, in the outer graph, where both capture them.
"""
import argparse
import pathlib
import sys

import onnx
from onnx import TensorProto, helper


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--condition", required=True, help="name of the bool input that chooses")
    parser.add_argument("--then", required=True, type=pathlib.Path)
    parser.add_argument("--else", required=True, type=pathlib.Path, dest="otherwise")
    parser.add_argument("-o", "--out", required=True, type=pathlib.Path)
    return parser.parse_args()


def content(tensor):
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = ""
    return copy.SerializeToString(deterministic=True)


def rename(graph, names):
    for node in graph.node:
        for field in (node.input, node.output):
            field[:] = [names.get(name, name) for name in field]
        for attribute in node.attribute:
            rename(attribute.g, names)
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            value.name = names.get(value.name, value.name)


def as_branch(graph, prefix, interface, shared):
    """The graph without inputs; names it makes get the prefix, its initializers move to `shared` (content -> tensor)."""
    names, taken = {}, {tensor.name for tensor in shared.values()}
    for tensor in graph.initializer:
        known = shared.setdefault(content(tensor), tensor)
        if known is tensor and tensor.name in taken:
            names[tensor.name] = f"{prefix}/{tensor.name}"
            tensor.name = names[tensor.name]
        elif known is not tensor:
            names[tensor.name] = known.name
    for node in graph.node:
        names |= {name: f"{prefix}/{name}" for name in node.output if name}
        node.name = f"{prefix}/{node.name}"
    for value in graph.input:
        if value.name not in interface:
            sys.exit(f"input {value.name} is not one of the joined model")
    rename(graph, names)
    del graph.initializer[:]
    del graph.input[:]
    # value_info of what moved outside would declare a name that the branch does not make.
    made = {name for node in graph.node for name in node.output}
    kept = [value for value in graph.value_info if value.name in made]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    graph.name = prefix
    return graph


def joined_outputs(a, b):
    """The outer outputs: of two dimensions that differ neither is stated."""
    outputs = []
    for x, y in zip(a, b, strict=True):
        value = onnx.ValueInfoProto()
        value.CopyFrom(x)
        for dim, other in zip(value.type.tensor_type.shape.dim, y.type.tensor_type.shape.dim, strict=True):
            if dim != other:
                dim.Clear()
        outputs.append(value)
    return outputs


def merge(then_model, else_model, condition):
    inputs = {value.name: value for model in (else_model, then_model) for value in model.graph.input}
    outputs = joined_outputs(then_model.graph.output, else_model.graph.output)
    names = [value.name for value in outputs]
    if names != [value.name for value in else_model.graph.output]:
        sys.exit("the outputs of the two models differ in name or order")
    shared = {}
    branches = {
        "then_branch": as_branch(then_model.graph, "then", inputs, shared),
        "else_branch": as_branch(else_model.graph, "else", inputs, shared),
    }
    nodes = [
        helper.make_node("Squeeze", [condition], ["chosen"], name="choose"),
        helper.make_node("If", ["chosen"], names, name="branch", **branches),
    ]
    flag = helper.make_tensor_value_info(condition, TensorProto.BOOL, [1])
    graph = helper.make_graph(nodes, "merged", [*inputs.values(), flag], outputs, list(shared.values()))
    model = helper.make_model(graph, opset_imports=then_model.opset_import, producer_name="merge_branches")
    model.ir_version = then_model.ir_version
    return model


def main():
    options = parse()
    then_model, else_model = onnx.load(str(options.then)), onnx.load(str(options.otherwise))
    if list(then_model.opset_import) != list(else_model.opset_import):
        sys.exit("the two models import different opsets")
    model = merge(then_model, else_model, options.condition)
    onnx.checker.check_model(model)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(model.SerializeToString())
    print(f"{options.out}: {len(model.graph.initializer)} shared initializers, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
