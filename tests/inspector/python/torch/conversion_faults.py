# SPDX-License-Identifier: Apache-2.0
"""Wrong conversions, made by changing a right export: what a faulty exporter or optimizer would have written."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

Edit = Callable[[onnx.ModelProto], None]
SDPA = "aten.scaled_dot_product_attention.default"


def made_by(model: onnx.ModelProto, value: str) -> onnx.NodeProto:
    """The node that makes a value, in whichever body."""
    waiting = [model.graph]
    while waiting:
        for node in waiting.pop().node:
            if value in node.output:
                return node
            waiting.extend(attribute.g for attribute in node.attribute if attribute.HasField("g"))
    raise KeyError(value)


def attribute(value: str, name: str, new) -> Edit:
    def edit(model):
        node = made_by(model, value)
        kept = [known for known in node.attribute if known.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, new)])
    return edit


def operator(value: str, op: str) -> Edit:
    return lambda model: setattr(made_by(model, value), "op_type", op)


def swapped(value: str) -> Edit:
    def edit(model):
        node = made_by(model, value)
        node.input[0], node.input[1] = node.input[1], node.input[0]
    return edit


def constant(name: str, change) -> Edit:
    """Other numbers in a constant, for all that read it."""
    def edit(model):
        held = next(tensor for tensor in model.graph.initializer if tensor.name == name)
        old = numpy_helper.to_array(held)
        held.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(old.copy())).astype(old.dtype), name))
    return edit


def operand(value: str, position: int, change) -> Edit:
    """Other numbers in the constant that one node reads."""
    def edit(model):
        node = made_by(model, value)
        held = next(tensor for tensor in model.graph.initializer if tensor.name == node.input[position])
        old = numpy_helper.to_array(held)
        name = held.name + "_of_" + value
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(change(old.copy())).astype(old.dtype), name))
        node.input[position] = name
    return edit


def passed_on(value: str, position: int = 0) -> Edit:
    """The node does nothing: it hands on one of its inputs."""
    def edit(model):
        node = made_by(model, value)
        kept = node.input[position]
        node.op_type = "Identity"
        del node.input[:], node.attribute[:]
        node.input.append(kept)
    return edit


def rewired(reader: str, **others: str) -> Edit:
    """A node reads other values: ``rewired("add", x="layer_norm")``."""
    def edit(model):
        node = made_by(model, reader)
        for position, name in enumerate(node.input):
            node.input[position] = others.get(name, name)
    return edit


def removed(value: str, instead: str) -> Edit:
    """The node is missing; its readers read something else."""
    def edit(model):
        model.graph.node.remove(made_by(model, value))
        for node in model.graph.node:
            for position, name in enumerate(node.input):
                node.input[position] = instead if name == value else name
    return edit


def both(*edits: Edit) -> Edit:
    def edit(model):
        for each in edits:
            each(model)
    return edit


def outputs_swapped(first: int, second: int) -> Edit:
    def edit(model):
        outputs = list(model.graph.output)
        outputs[first], outputs[second] = outputs[second], outputs[first]
        copies = [onnx.ValueInfoProto.FromString(output.SerializeToString()) for output in outputs]
        del model.graph.output[:]
        model.graph.output.extend(copies)
    return edit


def branches_swapped(model: onnx.ModelProto) -> None:
    node = next(node for node in model.graph.node if node.op_type == "If")
    node.attribute[0].name, node.attribute[1].name = node.attribute[1].name, node.attribute[0].name


# (model, what is wrong, edit, ATen operator that is to be named, words of the sentence)
FAULTS = [
    ("attention", "softmax axis", attribute("softmax", "axis", 2), "aten.softmax.int", "what axis=3 gives"),
    ("attention", "softmax is LogSoftmax", operator("softmax", "LogSoftmax"), "aten.softmax.int", "what Softmax gives"),
    ("attention", "scale", operand("div", 1, lambda old: 8.0), "aten.div.Tensor", "=2.82843 gives"),
    ("attention", "value of the mask", operand("masked_fill", 1, lambda old: -1.0), "aten.masked_fill.Scalar",
     "=-inf gives"),
    ("attention", "no mask", passed_on("masked_fill", 2), "aten.masked_fill.Scalar", "infinities"),
    ("attention", "mask inverted", constant("triu", lambda old: ~old), "aten.triu.default", "another constant 'triu'"),
    ("attention", "rotary slice",
     both(operand("slice_4", 1, lambda old: old + 1), operand("slice_4", 2, lambda old: old + 1)),
     "aten.slice.Tensor", ""),
    ("attention", "rotary sign", passed_on("neg"), "aten.neg.default", "with its sign changed"),
    ("attention", "rotary order", swapped("cat"), "aten.cat.default", "swapped"),
    ("attention", "weight transposed", constant("val_22", lambda old: old.T), "aten.linear.default", "read transposed"),
    ("attention", "no bias", passed_on("linear"), "aten.linear.default", "plus 'query.bias', which is missing"),
    ("attention", "permutation", attribute("transpose_3", "perm", [0, 1, 2, 3]), "aten.transpose.int",
     "perm=[0,1,3,2]"),
    ("mlp", "epsilon of a norm", attribute("layer_norm", "epsilon", 0.1), "aten.layer_norm.default", "epsilon=1e-05"),
    ("mlp", "form of gelu", attribute("gelu", "approximate", "none"), "aten.gelu.default", "approximate=tanh"),
    ("mlp", "residual of another value", rewired("add", x="layer_norm"), "aten.add.Tensor", "computes it of 'x'"),
    ("mlp", "no residual", passed_on("add", 1), "aten.add.Tensor", "plus 'x', which is missing"),
    ("mlp", "weights exchanged", both(rewired("val_3", val_2="val_4"), rewired("val_5", val_4="val_2")),
     "aten.linear.default", ""),
    ("block", "residual removed", removed("add_2", "linear_3"), "aten.add.Tensor", "which is missing"),
    ("block", "norm removed", removed("layer_norm_1", "add_2"), "aten.layer_norm.default",
     "missing from the ONNX graph"),
    ("cnn", "padding", attribute("conv2d_1", "pads", [0, 0, 2, 2]), "aten.conv2d.default", "pads=[1,1,1,1]"),
    ("cnn", "epsilon of a norm", attribute("getitem", "epsilon", 0.05),
     "aten._native_batch_norm_legit_no_training.default", "epsilon=1e-05"),
    ("cnn", "norm folded wrongly", constant("conv.bias", lambda old: old * 0),
     "aten._native_batch_norm_legit_no_training.default", ""),
    ("cnn", "axes of a mean", operand("mean", 1, lambda old: np.array([1, 2])), "aten.mean.dim", "=[3,2] gives"),
    ("cnn", "keepdims of a mean", attribute("mean", "keepdims", 1), "aten.mean.dim", "keepdims=0 gives"),
    ("cnn", "softmax without log", operator("log_softmax", "Softmax"), "aten.log_softmax.int", "what LogSoftmax gives"),
    ("fused", "softmax within attention", attribute("val_70", "axis", 2), SDPA, "what axis=3 gives in its node"),
    ("fused", "scale within attention", constant("val_64", lambda old: old * 1.3), SDPA, "'val_64'=0.594604"),
    ("fused", "no mask within attention", passed_on("val_69"), SDPA, ""),
    ("fused", "permutation within attention", attribute("val_61", "perm", [0, 1, 2]), SDPA, ""),
    ("fused", "correction of a variance", constant("val_83", lambda old: old + 1), "prims.var.default", "'val_83'=7"),
    ("fused", "variance not centered", passed_on("val_73"), "prims.var.default", ""),
    ("fused", "order of chunks", both(rewired("view", split_split_0="split_split_1"),
                                      rewired("view_1", split_split_1="split_split_0")),
     "aten.view.default", "computes it of 'split_split_1'"),
    ("fused", "reciprocal without root", passed_on("val_85"), "aten.rsqrt.default", ""),
    ("fused", "outputs exchanged", outputs_swapped(1, 2), "aten.sqrt.default", "torch returns 'rsqrt'"),
    ("rms", "epsilon", operand("add", 1, lambda old: old * 0 + 0.1), "aten.add.Tensor", "=0.001 gives"),
    ("rms", "sum for mean", operator("mean", "ReduceSum"), "aten.mean.dim", "what ReduceMean gives"),
    ("rms", "power", operand("pow_1", 1, lambda old: old * 0 + 3), "aten.pow.Tensor_Scalar", "=2 gives"),
    ("embedded", "another table", rewired("add", embedding_1="embedding"), "aten.add.Tensor", ""),
    ("embedded", "axis of a norm", attribute("layer_norm", "axis", 1), "aten.layer_norm.default", "axis=2 gives"),
    ("recurrent", "activation", operator("tanh_1", "Sigmoid"), "aten.tanh.default", "what Tanh gives"),
    ("mixed", "smallest for largest", attribute("getitem_2", "largest", 0), "aten.topk.default", "largest=1 gives"),
    ("mixed", "rounding", operator("round_1", "Floor"), "aten.round.default", "what Round gives"),
    ("mixed", "cast before it is rounded", rewired("_to_copy", round_1="mul"), "aten._to_copy.default", "of 'round_1'"),
    ("mixed", "axis of a gather", attribute("index_select", "axis", 0), "aten.index_select.default", "axis=1 gives"),
    ("mixed", "operands of a difference", swapped("sub"), "aten.sub.Tensor", "swapped"),
    ("mixed", "operands of a quotient", swapped("div"), "aten.div.Tensor", "swapped"),
    ("mixed", "sum without the last", attribute("cumsum", "exclusive", 1), "aten.cumsum.default", "exclusive=0 gives"),
    ("mixed", "bound", operand("clamp", 2, lambda old: old * 0 + 0.5), "aten.clamp.default", "=0.75 gives"),
    ("branching", "branches exchanged", branches_swapped, "higher_order.cond", "inverted mask 'gt'"),
    ("branching", "within a branch", passed_on("relu"), "aten.relu.default", ""),
    ("vit", "order of tokens", swapped("cat"), "aten.cat.default", "swapped"),
    ("vit", "form of gelu", attribute("gelu", "approximate", "tanh"), "aten.gelu.default", "approximate=none"),
    ("llama", "rotary order", swapped("cat_1"), "aten.cat.default", "swapped"),
    ("llama", "scale of scores", operand("mul_9", 1, lambda old: old * 2), "aten.mul.Tensor", "gives"),
    ("llama", "gate without its input", passed_on("silu", 1), "aten.silu.default", ""),
    ("gpt2", "cubic term", operand("mul_2", 1, lambda old: old * 2), "aten.mul.Tensor", "=0.044715"),
]
