# SPDX-License-Identifier: Apache-2.0
"""The models that real tools make of a model: one function for each tool and setting, in FORMS. Nothing is seeded here.

A form is a function (Source, rng) -> the other model, or None where the tool does not apply. What the tool raises is the
caller's to catch: the form is then left out for that model.
"""
from __future__ import annotations

import copy
import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization import matmul_nbits_quantizer, shape_inference
from onnxruntime.transformers import float16, optimizer

import harmless
import harmless_forms
from tools.architectures import ARCHITECTURES, Array, Arrays, Exports

Level = onnxruntime.GraphOptimizationLevel
QuantType, QuantFormat = quantization.QuantType, quantization.QuantFormat
REDUCED = {"qdq", "qoperator", "dynamic", "nbits"}


class Source(NamedTuple):
    """A model, its inputs, the name of its architecture, a folder for files in between, and the exports of its seed."""

    model: onnx.ModelProto
    inputs: Arrays
    architecture: str
    folder: pathlib.Path
    exports: Exports

    def saved(self, model: onnx.ModelProto | None = None) -> str:
        path = self.folder / "source.onnx"
        onnx.save(model or self.model, str(path))
        return str(path)


Form = Callable[[Source, np.random.Generator], "onnx.ModelProto | None"]
FORMS: dict[str, Form] = {}
GROUPS: dict[str, str] = {}
ABSENT: dict[str, str] = {}


def form(group: str, package: str = "") -> Callable[[Form], Form]:
    """Enters a form under a group: float, half, or quantized; none where the package it needs is not installed."""
    def enter(function: Form) -> Form:
        if package and importlib.util.find_spec(package) is None:
            ABSENT[function.__name__] = f"{package} is not installed"
        else:
            FORMS[function.__name__], GROUPS[function.__name__] = function, group
        return function
    return enter


def optimized(source: Source, level: int) -> onnx.ModelProto:
    """The model as the runtime saves it, in portable layouts: not in that of the processor it is saved on."""
    options, path = onnxruntime.SessionOptions(), source.folder / "optimized.onnx"
    options.graph_optimization_level, options.optimized_model_filepath, options.log_severity_level = level, str(path), 4
    onnxruntime.InferenceSession(source.model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=["NchwcTransformer"])
    return onnx.load(str(path))


@form("float")
def ort_basic(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    return optimized(source, Level.ORT_ENABLE_BASIC)


@form("float")
def ort_extended(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    return optimized(source, Level.ORT_ENABLE_EXTENDED)


@form("float")
def ort_all(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    return optimized(source, Level.ORT_ENABLE_ALL)


def fused(source: Source, rng: np.random.Generator) -> Any:
    kind = ARCHITECTURES[source.architecture].optimizer
    if not kind:
        return None
    with_shapes = onnx.shape_inference.infer_shapes(source.model)
    return optimizer.optimize_model(source.saved(with_shapes), model_type=kind, num_heads=4, hidden_size=32, opt_level=int(rng.integers(2)))


@form("float")
def transformer(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    made = fused(source, rng)
    return None if made is None else stored(source, made)


def stored(source: Source, made: Any) -> onnx.ModelProto:
    """As the tool writes it into a file, which completes the imported operator sets."""
    path = str(source.folder / "fused.onnx")
    made.save_model_to_file(path)
    return onnx.load(path)


@form("half")
def transformer_half(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    made = fused(source, rng)
    if made is None:
        return None
    made.convert_float_to_float16(keep_io_types=bool(rng.integers(2)), op_block_list=["LayerNormalization", "SkipLayerNormalization"] if rng.integers(2) else None)
    return stored(source, made)


@form("quantized")
def transformer_dynamic(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    made = fused(source, rng)
    return None if made is None else dynamically(source, stored(source, made), rng)


def halved(source: Source, **options: object) -> onnx.ModelProto:
    return float16.convert_float_to_float16(copy.deepcopy(source.model), **options)


@form("half")
def half(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    return halved(source, keep_io_types=bool(rng.integers(2)))


@form("half")
def half_keeps_operators(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    kept = [["Softmax", "LayerNormalization", "ReduceMean"], ["Conv"], ["Add", "Mul"], ["MatMul", "Gemm"]][rng.integers(4)]
    return halved(source, keep_io_types=True, op_block_list=[*float16.DEFAULT_OP_BLOCK_LIST, *kept])


@form("half")
def half_keeps_nodes(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    names = [node.name for node in source.model.graph.node if rng.random() < 0.3]
    return halved(source, keep_io_types=True, node_block_list=names)


@form("half", "onnxconverter_common")
def half_converter(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    from onnxconverter_common import float16 as converter
    return converter.convert_float_to_float16(copy.deepcopy(source.model), keep_io_types=True)


@form("half")
def autocast(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    made = source.exports.get(source.architecture, "autocast")
    return None if made is None else made.model


class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]
    """The inputs, and twice the same with a little noise."""

    def __init__(self, inputs: Arrays, rng: np.random.Generator) -> None:
        def noisy(value: Array) -> Array:
            is_float = value.dtype.kind == "f"
            return (value + 0.1 * rng.standard_normal(value.shape)).astype(value.dtype) if is_float else value
        self.rows = [inputs, *({name: noisy(value) for name, value in inputs.items()} for _ in range(2))]

    def get_next(self) -> Arrays | None:
        return self.rows.pop() if self.rows else None


def statically(source: Source, rng: np.random.Generator, layout: Any) -> onnx.ModelProto:
    path, prepared = str(source.folder / "static.onnx"), str(source.folder / "prepared.onnx")
    if rng.integers(2):
        shape_inference.quant_pre_process(source.saved(), prepared, skip_symbolic_shape=True)
    else:
        onnx.save(source.model, prepared)
    types = [(QuantType.QUInt8, QuantType.QInt8), (QuantType.QInt8, QuantType.QInt8), (QuantType.QUInt8, QuantType.QUInt8)]
    activations, weights = types[rng.integers(3 if layout == QuantFormat.QDQ else 1)]
    extra = {"WeightSymmetric": bool(rng.integers(2)) or weights == QuantType.QInt8, "ActivationSymmetric": bool(rng.integers(3) == 0)}
    operators = [None, ["Conv", "MatMul", "Gemm"], None][rng.integers(3)]
    quantization.quantize_static(prepared, path, Calibration(source.inputs, rng), quant_format=layout, op_types_to_quantize=operators,
                                 per_channel=bool(rng.integers(2)), activation_type=activations, weight_type=weights, extra_options=extra)
    return onnx.load(path)


@form("quantized")
def qdq(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    return statically(source, rng, QuantFormat.QDQ)


@form("quantized")
def qoperator(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    return statically(source, rng, QuantFormat.QOperator)


@form("quantized")
def qdq_optimized(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    """QDQ pairs fused to QLinear operators by the runtime."""
    made = statically(source, rng, QuantFormat.QDQ)
    return optimized(source._replace(model=made), Level.ORT_ENABLE_EXTENDED)


def dynamically(source: Source, model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    path = str(source.folder / "dynamic.onnx")
    quantization.quantize_dynamic(source.saved(model), path, per_channel=bool(rng.integers(2)), weight_type=[QuantType.QInt8, QuantType.QUInt8][rng.integers(2)],
                                  extra_options={"MatMulConstBOnly": True})
    return onnx.load(path)


@form("quantized")
def dynamic(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    return dynamically(source, source.model, rng)


@form("quantized")
def nbits(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    if not any(node.op_type == "MatMul" for node in source.model.graph.node):
        return None
    settings: dict[str, Any] = {"block_size": 16, "is_symmetric": bool(rng.integers(2)), "accuracy_level": [None, 0, 1][rng.integers(3)]}
    if rng.integers(3) == 0:
        settings["op_types_to_quantize"] = ("MatMul", "Gather")
    made = matmul_nbits_quantizer.MatMulNBitsQuantizer(copy.deepcopy(source.model), **settings)
    made.process()
    return made.model.model


@form("float")
def script_optimizer(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    import onnxscript.optimizer
    return onnxscript.optimizer.optimize(copy.deepcopy(source.model))


@form("float")
def script_rewriter(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    import onnxscript.rewriter
    return onnxscript.rewriter.rewrite(onnxscript.optimizer.optimize(copy.deepcopy(source.model)))


@form("float")
def script_fusions(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    import onnx_ir
    from onnxscript.rewriter.ort_fusions import optimize_for_ort
    if not ARCHITECTURES[source.architecture].optimizer:
        return None
    made = optimize_for_ort(onnx_ir.from_proto(copy.deepcopy(source.model)))
    return onnx_ir.to_proto(made[0] if isinstance(made, tuple) else made)


@form("float")
def other_opset(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    now = max(entry.version for entry in source.model.opset_import if entry.domain in ("", "ai.onnx"))
    return onnx.version_converter.convert_version(source.model, [number for number in (15, 17, 19, 20, 21, 22) if number != now][rng.integers(5)])


@form("float")
def simplifier(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    import onnxsim
    made, _ = onnxsim.simplify(source.model)
    return made


@form("float")
def slim(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
    import onnxslim
    return onnxslim.slim(copy.deepcopy(source.model))


for optional, package in (("simplifier", "onnxsim"), ("slim", "onnxslim")):
    if importlib.util.find_spec(package) is None:
        ABSENT[optional] = f"{package} is not installed"
        del FORMS[optional], GROUPS[optional]


def exported(variant: str) -> Form:
    def again(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
        made = source.exports.get(source.architecture, variant)
        return None if made is None else made.model
    return again


def of_the_tree(change: Callable[[onnx.ModelProto, np.random.Generator], object]) -> Form:
    def changed(source: Source, rng: np.random.Generator) -> onnx.ModelProto | None:
        model = copy.deepcopy(source.model)
        change(model, rng)
        for function in model.functions:  # written for the model's own version of the operators
            for entry in function.opset_import:
                entry.version = next((known.version for known in model.opset_import if known.domain == entry.domain), entry.version)
        return model if model.SerializeToString() != source.model.SerializeToString() else None
    return changed


def renamed(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    """Nodes and inner values renamed and in another order; inputs and outputs keep their names."""
    kept = [[value.name for value in values] for values in (model.graph.input, model.graph.output)]
    harmless.rename(model, rng)
    back = {value.name: name for values, names in zip((model.graph.input, model.graph.output), kept) for value, name in zip(values, names)}
    for node in model.graph.node:
        node.input[:] = [back.get(name, name) for name in node.input]
        node.output[:] = [back.get(name, name) for name in node.output]
    for value in [*model.graph.input, *model.graph.output]:
        value.name = back[value.name]
    harmless.reorder(model, rng)


for variant_name in ("script", "script_old", "dynamo_new", "free", "script_free"):
    FORMS[f"exported_{variant_name}"], GROUPS[f"exported_{variant_name}"] = exported(variant_name), "float"
for change_name, harmless_change in (("renamed", renamed), ("restructured", harmless.restructure), ("folded", harmless.fold_normalization), ("accumulated", harmless.split_products),
                                     ("decomposed", harmless.decompose), ("plain_operators", harmless_forms.plain_operators), ("outlined", harmless_forms.outlined)):
    FORMS[change_name], GROUPS[change_name] = of_the_tree(harmless_change), "float"
