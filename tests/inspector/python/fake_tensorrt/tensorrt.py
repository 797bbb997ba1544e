# SPDX-License-Identifier: Apache-2.0
"""The part of TensorRT's Python interface that its runner uses, on host memory, computed by onnx's own evaluator.

It is as strict as TensorRT where that is known: shapes come before the run, every output has an address or an allocator,
an open shape needs a profile. FAKE_TENSORRT_LOG names a file for what a test asks about.
"""

from __future__ import annotations

import ctypes
import enum
import os
from typing import Any

import numpy as np
import onnx
import onnx.reference

__version__ = "10.0.fake"

DataType = enum.Enum("DataType", "FLOAT HALF INT8 INT32 INT64 BOOL UINT8 BF16")
TensorIOMode = enum.Enum("TensorIOMode", "NONE INPUT OUTPUT")
TensorLocation = enum.Enum("TensorLocation", "DEVICE HOST")
MemoryPoolType = enum.Enum("MemoryPoolType", "WORKSPACE DLA_MANAGED_SRAM")
BuilderFlag = enum.Enum("BuilderFlag", "TF32 FP16")
NetworkDefinitionCreationFlag = enum.IntEnum("NetworkDefinitionCreationFlag", "STRONGLY_TYPED", start=1)

_NUMPY = {
    DataType.FLOAT: np.float32, DataType.HALF: np.float16, DataType.INT8: np.int8, DataType.INT32: np.int32,
    DataType.INT64: np.int64, DataType.BOOL: np.bool_, DataType.UINT8: np.uint8,
}  # fmt: skip
_OF_ONNX = {1: DataType.FLOAT, 10: DataType.HALF, 3: DataType.INT8, 6: DataType.INT32, 7: DataType.INT64, 9: DataType.BOOL,
            2: DataType.UINT8, 16: DataType.BF16}


def nptype(kind: DataType) -> Any:
    return _NUMPY[kind]  # as TensorRT does, it fails for types that numpy lacks


def log(text: str) -> None:
    with open(os.environ["FAKE_TENSORRT_LOG"], "a", encoding="utf-8") as file:
        file.write(text + "\n")


class Logger:
    WARNING = 2

    def __init__(self, severity: int) -> None:
        self.severity = severity


class ITensor:
    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name, self.shape = name, shape


class ILayer:
    def __init__(self, outputs: list[str]) -> None:
        self._outputs = [ITensor(name, ()) for name in outputs]
        self.num_outputs = len(outputs)

    def get_output(self, position: int) -> ITensor:
        return self._outputs[position]


class INetworkDefinition:
    model: onnx.ModelProto

    def fill(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._inputs = [
            ITensor(value.name, tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in value.type.tensor_type.shape.dim))
            for value in model.graph.input
        ]
        self._layers = [ILayer(list(node.output)) for node in model.graph.node if not node.name.startswith("folded")]
        self.outputs = [ITensor(value.name, ()) for value in model.graph.output]
        self.num_inputs, self.num_layers = len(self._inputs), len(self._layers)

    @property
    def num_outputs(self) -> int:
        return len(self.outputs)

    def get_input(self, number: int) -> ITensor:
        return self._inputs[number]

    def get_output(self, number: int) -> ITensor:
        return self.outputs[number]

    def get_layer(self, number: int) -> ILayer:
        return self._layers[number]

    def mark_output(self, tensor: ITensor) -> None:
        assert isinstance(tensor, ITensor)
        assert tensor.name not in {output.name for output in self.outputs}, "it is marked already"
        self.outputs.append(tensor)


class ParserError:
    def __init__(self, code: str, text: str, node: str) -> None:
        self._parts = code, text, node

    def code(self) -> str:
        return f"ErrorCode.{self._parts[0]}"

    def desc(self) -> str:
        return self._parts[1]

    def node_name(self) -> str:
        return self._parts[2]


class OnnxParser:
    def __init__(self, network: INetworkDefinition, logger: Logger) -> None:
        assert isinstance(logger, Logger)
        self._network = network
        self._errors: list[ParserError] = []

    def parse_from_file(self, path: str) -> bool:
        model = onnx.load(path)
        for node in model.graph.node:
            if node.op_type == "Unique":
                self._errors.append(ParserError("UNSUPPORTED_NODE", "no importer for Unique", node.name))
        self._network.fill(model)
        return not self._errors

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, number: int) -> ParserError:
        return self._errors[number]


class IOptimizationProfile:
    def __init__(self) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}

    def set_shape(self, name: str, least: tuple[int, ...], usual: tuple[int, ...], most: tuple[int, ...]) -> None:
        assert least <= usual <= most
        self.shapes[name] = usual


class IBuilderConfig:
    builder_optimization_level = 3

    def __init__(self) -> None:
        self.flags = {BuilderFlag.TF32}
        self.profiles: list[IOptimizationProfile] = []
        self.workspace = 0

    def set_memory_pool_limit(self, pool: MemoryPoolType, count: int) -> None:
        assert pool is MemoryPoolType.WORKSPACE
        self.workspace = count

    def clear_flag(self, flag: BuilderFlag) -> None:
        self.flags.discard(flag)

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        self.profiles.append(profile)
        return len(self.profiles) - 1


class Builder:
    def __init__(self, logger: Logger) -> None:
        assert isinstance(logger, Logger)

    def create_network(self, flags: int) -> INetworkDefinition:
        assert flags == 0
        return INetworkDefinition()

    def create_builder_config(self) -> IBuilderConfig:
        return IBuilderConfig()

    def create_optimization_profile(self) -> IOptimizationProfile:
        return IOptimizationProfile()

    def build_serialized_network(self, network: INetworkDefinition, config: IBuilderConfig) -> tuple[Any, ...]:
        is_open = [t.name for t in network._inputs if -1 in t.shape]
        assert not is_open or config.profiles and set(is_open) <= set(config.profiles[0].shapes), "an open shape has no profile"
        flags = ",".join(sorted(flag.name for flag in config.flags))
        log(f"build level={config.builder_optimization_level} flags={flags} workspace={config.workspace}")
        return network.model, [output.name for output in network.outputs]


class Runtime:
    def __init__(self, logger: Logger) -> None:
        assert isinstance(logger, Logger)

    def deserialize_cuda_engine(self, plan: tuple[Any, ...]) -> ICudaEngine:
        return ICudaEngine(*plan)


class ICudaEngine:
    def __init__(self, model: onnx.ModelProto, outputs: list[str]) -> None:
        known = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
        known.update((value.name, value) for value in (*model.graph.input, *model.graph.output))
        self.model, self.outputs, self.infos = model, outputs, known
        self.inputs = [value.name for value in model.graph.input]
        self.num_io_tensors = len(self.inputs) + len(outputs)

    def get_tensor_name(self, number: int) -> str:
        return [*self.inputs, *self.outputs][number]

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        return TensorIOMode.INPUT if name in self.inputs else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> DataType:
        return _OF_ONNX[self.infos[name].type.tensor_type.elem_type]

    def get_tensor_location(self, name: str) -> TensorLocation:
        return TensorLocation.HOST if name.startswith("shape") else TensorLocation.DEVICE

    def create_execution_context(self) -> IExecutionContext:
        return IExecutionContext(self)


class IOutputAllocator:
    pass


class IExecutionContext:
    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, Any] = {}

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self._shapes[name] = tuple(shape)
        return True

    def set_tensor_address(self, name: str, address: int) -> bool:
        assert address > 0
        self._addresses[name] = address
        return True

    def set_output_allocator(self, name: str, allocator: IOutputAllocator) -> bool:
        assert isinstance(allocator, IOutputAllocator)
        self._allocators[name] = allocator
        return True

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        if name.startswith("open"):  # the data decides
            return (-1,)
        return self._computed()[name].shape

    def _computed(self) -> dict[str, np.ndarray[Any, Any]]:
        """All outputs, of the inputs that are there now: shapes are asked for before the run."""
        feeds = {}
        for name in self._engine.inputs:
            kind = np.dtype(_NUMPY[self._engine.get_tensor_dtype(name)])
            count = int(np.prod(self._shapes[name]))
            feeds[name] = np.frombuffer(
                ctypes.string_at(self._addresses[name], count * kind.itemsize), kind).reshape(self._shapes[name])
        evaluator = onnx.reference.ReferenceEvaluator(self._engine.model)
        found = evaluator.run(None, feeds, intermediate=True)
        return {name: np.ascontiguousarray(found[name]) for name in self._engine.outputs}

    def execute_async_v3(self, stream: int) -> bool:
        log("run")
        for name, value in self._computed().items():
            if name in self._allocators:
                address = self._allocators[name].reallocate_output_async(name, 0, value.nbytes, 256, stream)
                self._allocators[name].notify_shape(name, value.shape)
            else:
                address = self._addresses[name]
            ctypes.memmove(address, value.ctypes.data, value.nbytes)
        return True
