# SPDX-License-Identifier: Apache-2.0
"""The runner of TensorRT: tensors of the network that are wanted are marked as outputs, and an engine is built of it."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parallax import _core
from parallax.errors import ExecutionError, InvalidModel, Unsupported, UsageError
from parallax.model import Model
from parallax.runners._device_memory import DeviceMemory, device_memory
from parallax.runners._groups import absent_note, bytes_of
from parallax.runners._requests import Answer, Description, Load, Run, answer_dump

__all__ = ["TensorRt", "make"]

# Types of TensorRT that numpy lacks -> our name and the words in which they are stored.
_WITHOUT_NUMPY = {"BF16": ("bfloat16", np.uint16), "FP8": ("float8e4m3fn", np.uint8)}
# Bytes of scratch memory where no limit is given.
_WORKSPACE = 1 << 30


class TensorRt:
    """A model by TensorRT on the current CUDA device; the engine is kept while values and shapes are the same."""

    def __init__(self, argument: str = "") -> None:
        self._argument = argument
        self._loaded: tuple[Load, Model] | None = None
        self._built: tuple[object, Any, list[str]] | None = None
        self._logger: Any = None

    def describe(self) -> Description:
        """Loads TensorRT. Raises Unsupported where it is not installed."""
        if self._argument:
            raise UsageError(f"tensorrt takes no argument, not {self._argument!r}; CUDA_VISIBLE_DEVICES chooses the device")
        trt = _package()
        if self._logger is None:
            self._logger = trt.Logger(trt.Logger.WARNING)
        settings = {"optimization": "default", "tf32": "where the model may be optimized"}
        return Description("tensorrt", str(trt.__version__), "cuda", settings, observes=True)

    def load(self, request: Load) -> None:
        """Takes a model, which TensorRT's parser reads; the engine is built in the first run, which has the shapes."""
        self.describe()
        self._built = None
        self._loaded = request, Model(request.model)
        self._network(request.model)

    def run(self, request: Run) -> Answer:
        """Builds the engine if it is not there, runs it once and writes the values that the network has."""
        if self._loaded is None:
            raise UsageError("no model is loaded; 'load' comes before 'run'")
        load, model = self._loaded
        feeds = {name: np.ascontiguousarray(array) for name, array in request.read_inputs(model).items()}
        outputs = [value.name for value in model.outputs]
        wanted = list(dict.fromkeys([*outputs, *request.wanted]))
        key = (tuple(wanted), tuple((name, array.shape) for name, array in feeds.items()))
        if self._built is None or self._built[0] != key:
            self._built = None  # the engine before goes first
            self._built = (key, *self._build(load, wanted, feeds))
        _, engine, absent = self._built
        path = request.answer + ".plx"
        values, milliseconds = self._execute(engine, feeds)
        settings = {"optimization": "default" if load.optimize else "none"}
        with answer_dump(path, self.describe(), model, settings) as dump:
            for name, value in values.items():
                dump.write(_core.escape_name(name), value, is_graph_output=name in outputs)
        return Answer(path, milliseconds, notes=absent_note(absent, "TensorRT"))

    def _network(self, path: str) -> tuple[Any, Any, Any]:
        """Builder, network and parser; all must live while the network does."""
        trt = _package()
        builder = trt.Builder(self._logger)
        flag = getattr(trt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)  # the only kind since TensorRT 10
        network = builder.create_network(0 if flag is None else 1 << int(flag))
        parser = trt.OnnxParser(network, self._logger)
        if not parser.parse_from_file(path):
            raise _parse_failure([parser.get_error(number) for number in range(parser.num_errors)])
        return builder, network, parser

    def _build(self, load: Load, wanted: list[str], feeds: Mapping[str, NDArray[Any]]) -> tuple[Any, list[str]]:
        """The engine, and the names that the network lacks."""
        trt = _package()
        builder, network, parser = self._network(load.model)
        tensors = _tensors(network)
        marked = {network.get_output(number).name for number in range(network.num_outputs)}
        for name in wanted:
            if name in tensors and name not in marked:
                network.mark_output(tensors[name])
        config = builder.create_builder_config()
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, load.memory_limit_bytes or _WORKSPACE)
        if not load.optimize:
            config.builder_optimization_level = 0
            config.clear_flag(trt.BuilderFlag.TF32)
        self._add_profile(builder, config, network, feeds)
        plan = builder.build_serialized_network(network, config)
        if plan is None:
            raise Unsupported("TensorRT cannot build an engine of the model; the lines above, on stderr, say why")
        engine = trt.Runtime(self._logger).deserialize_cuda_engine(plan)
        if engine is None:
            raise ExecutionError("TensorRT cannot load the engine that it has built")
        del parser
        inputs = {network.get_input(number).name for number in range(network.num_inputs)}
        return engine, [name for name in wanted if name not in tensors and name not in inputs]

    @staticmethod
    def _add_profile(builder: Any, config: Any, network: Any, feeds: Mapping[str, NDArray[Any]]) -> None:
        """Shapes that the model leaves open are those of the inputs of this run."""
        profile = builder.create_optimization_profile()
        is_needed = False
        for number in range(network.num_inputs):
            tensor = network.get_input(number)
            if tensor.name not in feeds:
                raise UsageError(f"input '{tensor.name}' is not given; TensorRT has no default for it")
            if any(dim < 0 for dim in tensor.shape):
                shape = feeds[tensor.name].shape
                profile.set_shape(tensor.name, shape, shape, shape)
                is_needed = True
        if is_needed:
            config.add_optimization_profile(profile)

    def _execute(self, engine: Any, feeds: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Any], float]:
        trt = _package()
        memory = device_memory()
        context = engine.create_execution_context()
        names = [engine.get_tensor_name(number) for number in range(engine.num_io_tensors)]
        made = {}
        for name in names:
            if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
                array = feeds[name].astype(trt.nptype(engine.get_tensor_dtype(name)), copy=False)
                context.set_input_shape(name, array.shape)
                is_host = engine.get_tensor_location(name) == trt.TensorLocation.HOST
                context.set_tensor_address(name, array.ctypes.data if is_host else memory.upload(array))
                made[name] = array  # a shape in host memory must live until the end of the run
        results = {}
        for name in names:
            if name not in made:
                results[name] = _Result(trt, engine, context, name, memory)
        begin = time.perf_counter()
        if not context.execute_async_v3(memory.stream):
            raise ExecutionError("TensorRT failed to run the engine; the lines above, on stderr, say why")
        values = {name: result.read() for name, result in results.items()}
        return values, (time.perf_counter() - begin) * 1e3


class _Result:
    """The memory of an output: a buffer of its size, or what TensorRT asks for where the data decides the size."""

    def __init__(self, trt: Any, engine: Any, context: Any, name: str, memory: DeviceMemory) -> None:
        kind = engine.get_tensor_dtype(name)
        self._other, words = _WITHOUT_NUMPY.get(str(kind).rpartition(".")[2], ("", None))
        self._dtype = np.dtype(words if words is not None else trt.nptype(kind))
        self._memory = memory
        self._shape = tuple(context.get_tensor_shape(name))
        self._host: NDArray[np.uint8] | None = None
        self._allocator: Any = None
        self._address = 0
        if any(dim < 0 for dim in self._shape):
            self._allocator = _allocator(trt, memory)
            context.set_output_allocator(name, self._allocator)
            return
        count = bytes_of(self._shape, self._dtype.itemsize)
        if engine.get_tensor_location(name) == trt.TensorLocation.HOST:
            self._host = np.empty(max(count, 1), np.uint8)
            self._address = self._host.ctypes.data
        else:
            self._address = memory.allocate(count)
        context.set_tensor_address(name, self._address)

    def read(self) -> Any:
        """The value, of the shape that the run gave it."""
        if self._allocator is not None:
            self._shape, self._address = self._allocator.shape, self._allocator.address
        array = np.empty(self._shape, self._dtype)
        if self._host is None:
            self._memory.download(self._address, array)
        else:
            array.reshape(-1).view(np.uint8)[:] = self._host[: array.nbytes]
        return _core.Tensor(array, self._other) if self._other else array


def _allocator(trt: Any, memory: DeviceMemory) -> Any:
    """An object that gives TensorRT memory when a size is known, and keeps the shape."""

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]  # the class of a package that need not be there
        shape: tuple[int, ...] = ()
        address = 0

        def reallocate_output_async(self, name: str, current: int, size: int, alignment: int, stream: int) -> int:
            self.address = memory.allocate(size)
            return self.address

        def reallocate_output(self, name: str, current: int, size: int, alignment: int) -> int:  # before TensorRT 10
            return self.reallocate_output_async(name, current, size, alignment, 0)

        def notify_shape(self, name: str, shape: Any) -> None:
            self.shape = tuple(shape)

    return Allocator()


def _package() -> Any:
    try:
        return importlib.import_module("tensorrt")
    except ImportError as error:
        raise Unsupported("TensorRT is not installed; pip install tensorrt, on a machine with an NVIDIA GPU") from error


def _tensors(network: Any) -> dict[str, Any]:
    """Name -> tensor of all that the layers of a network compute."""
    found = {}
    for number in range(network.num_layers):
        layer = network.get_layer(number)
        for position in range(layer.num_outputs):
            tensor = layer.get_output(position)
            if tensor is not None:
                found[tensor.name] = tensor
    return found


def _parse_failure(errors: list[Any]) -> Unsupported | InvalidModel:
    """The first error of the parser; a model that only lacks a translation is valid."""
    text = errors[0].desc() if errors else "it says nothing about the reason"
    node = errors[0].node_name() if errors and hasattr(errors[0], "node_name") else ""
    kind = Unsupported if not errors or "UNSUPPORTED" in str(errors[0].code()).upper() else InvalidModel
    return kind(f"TensorRT's parser refuses the model: {text}", node=node)


def make(argument: str) -> TensorRt:
    """The runner of ``python -m parallax.runners tensorrt``."""
    return TensorRt(argument)
