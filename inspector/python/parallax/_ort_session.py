# SPDX-License-Identifier: Apache-2.0
"""Sessions of onnxruntime: models, feeds and outputs of every element type on their way in and out."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parallax import _core
from parallax.errors import Error, ExecutionError, OutOfMemory, Unsupported, UsageError

__all__ = ["LEVELS", "Runtime", "failure_of", "weight_bytes"]

# optimization= -> the name in onnxruntime.GraphOptimizationLevel
LEVELS = {"none": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}

# Bytes up to which a model goes to onnxruntime in memory: a protobuf message holds less than 2 GiB.
_LARGEST_MESSAGE = 1_900_000_000

# Element types that onnxruntime has and numpy has not, by their names in onnxruntime.
_WITHOUT_NUMPY = {
    "bfloat16": "bfloat16", "float8e4m3fn": "float8e4m3fn", "float8e4m3fnuz": "float8e4m3fnuz", "float8e5m2": "float8e5m2",
    "float8e5m2fnuz": "float8e5m2fnuz", "float4e2m1": "float4e2m1", "int4": "int4", "uint4": "uint4", "int2": "int2",
    "uint2": "uint2",
}  # fmt: skip
# Their numbers in TensorProto.DataType.
_ONNX_NUMBERS = {
    "bfloat16": 16, "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20,
}  # fmt: skip
# The end of an event's name in a profile: "conv1_kernel_time".
_KERNEL_TIME = "_kernel_time"
# "running Conv node. Name:'conv1' Status Message: ...", "Foo(1) node with name 'foo'": the node in onnxruntime's messages.
_NODE = re.compile(r"Name:'([^']+)'|node with name '([^']+)'")


def failure_of(error: BaseException, context: str) -> Error:
    """An exception of onnxruntime, which has a class for each status, as one of ours, with the node that it names."""
    text = str(error)
    found = _NODE.search(text)
    node = "" if found is None else found.group(1) or found.group(2)
    if type(error).__name__ == "NotImplemented":
        return Unsupported(f"{context}: {text}", node=node)
    if isinstance(error, MemoryError) or "bad_alloc" in text or "Failed to allocate memory" in text:
        return OutOfMemory(f"{context}: {text}", node=node)
    return ExecutionError(f"{context}: {text}", node=node)


def _package() -> Any:
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise Unsupported("onnxruntime is not installed; pip install onnxruntime, or 'parallax-onnx[ort]'") from error


class Runtime:
    """onnxruntime with one choice of execution providers.

    ``threads``: of each session, 0 where onnxruntime may choose. ``is_lean``: memory that a run does not need any more
    goes back to the system at once. ``milliseconds`` were spent in runs.
    """

    def __init__(self, providers: Sequence[Any] | None = None, threads: int = 0, is_lean: bool = False) -> None:
        self._ort = _package()
        known = self._ort.get_available_providers()
        chosen = list(providers) if providers is not None else ["CPUExecutionProvider"]
        for provider in chosen:
            name = provider[0] if isinstance(provider, tuple) else provider
            if name not in known:
                raise UsageError(f"provider {name!r} is not available; this onnxruntime has {', '.join(known)}")
        self.providers = chosen
        self.threads = threads
        self.is_lean = is_lean
        self.milliseconds = 0.0

    @property
    def version(self) -> str:
        """The package's version."""
        return str(self._ort.__version__)

    def set_seed(self, seed: int) -> None:
        """Seeds the random operators of sessions that are made from now on."""
        self._ort.set_seed(seed)

    def node_milliseconds(self, model: _core.Model, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
        """Times of the nodes in one run, by name, after another run that warms up; names that nodes share are summed."""
        with tempfile.TemporaryDirectory(prefix="parallax-ort-") as folder:
            session = self.session(model, profile=os.path.join(folder, "profile"))
            self.run(session, feeds, names)
            begin = time.perf_counter()
            self.run(session, feeds, names)
            length_us = (time.perf_counter() - begin) * 1e6
            with open(session.end_profiling(), encoding="utf-8") as file:
                events = [event for event in json.load(file) if str(event.get("name")).endswith(_KERNEL_TIME)]
        last = max((event["ts"] + event["dur"] for event in events), default=0)
        times: dict[str, float] = {}
        for event in events:
            if event["ts"] >= last - length_us:
                name = event["name"].removesuffix(_KERNEL_TIME)
                times[name] = times.get(name, 0.0) + event["dur"] / 1e3
        return times

    def session(
        self, model: _core.Model, level: str = "none", write_to: str | None = None, profile: str | None = None
    ) -> Any:
        """Makes a session; ``write_to`` is a file for the optimized model, ``profile`` begins the name of one for times.

        Raises as failure_of() says.
        """
        options = self._ort.SessionOptions()
        options.graph_optimization_level = getattr(self._ort.GraphOptimizationLevel, LEVELS[level])
        options.log_severity_level = 3
        options.intra_op_num_threads = self.threads
        if self.is_lean:
            options.enable_cpu_mem_arena = False
            options.enable_mem_pattern = False
            options.execution_order = self._ort.ExecutionOrder.PRIORITY_BASED  # the shape of a value before the next value
        if write_to is not None:
            options.optimized_model_filepath = write_to
        if profile is not None:
            options.enable_profiling = True
            options.profile_file_prefix = profile
        with tempfile.TemporaryDirectory(prefix="parallax-ort-") as folder:
            source: Any = os.path.join(folder, "model.onnx")
            if weight_bytes(model) > _LARGEST_MESSAGE:
                model.save(source)
                if write_to is not None:
                    name = os.path.basename(write_to) + ".data"
                    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", name)
            else:
                source = model.to_bytes()
            try:
                return self._ort.InferenceSession(source, options, providers=self.providers)
            except Exception as error:
                raise failure_of(error, "onnxruntime cannot load the model") from error

    def feeds(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs as onnxruntime takes them."""
        return {name: self._feed(name, value) for name, value in inputs.items()}

    def _feed(self, name: str, value: Any) -> Any:
        if not isinstance(value, _core.Tensor):
            return [self._feed(name, item) for item in value] if isinstance(value, list) else value
        if value.dtype not in _WITHOUT_NUMPY:
            return value.numpy()
        number = _ONNX_NUMBERS.get(value.dtype)
        if number is None:
            raise Unsupported(f"input {name!r} is {value.dtype}; onnxruntime's Python interface takes no such inputs")
        words = np.frombuffer(_bytes_at(value.address, value.nbytes), np.uint16 if number == 16 else np.uint8)
        return self._ort.OrtValue.ortvalue_from_numpy_with_onnx_type(words.reshape(value.shape), number)

    def run(self, session: Any, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Runs a session: outputs by name, arrays or (where numpy lacks the type) Tensors; sequences are lists.

        Outputs that numpy has no type for come from a run of their own where others are sequences or maps.
        """
        types = {output.name: output.type for output in session.get_outputs()}
        odd = [name for name in names if _element_of(types[name]) in _WITHOUT_NUMPY]
        plain = [name for name in names if name not in set(odd)]
        results: dict[str, Any] = {}
        try:
            if odd and all(types[name].startswith("tensor(") for name in plain) and _are_numbers(feeds):
                results.update(self._run_values(session, feeds, list(names)))
            else:
                if odd:
                    results.update(self._run_values(session, feeds, odd))
                if plain:
                    results.update(zip(plain, self._timed(session.run, plain, dict(feeds)), strict=True))
        except Error:
            raise
        except Exception as error:
            raise failure_of(error, "onnxruntime") from error
        return results

    def _timed(self, run: Callable[..., Any], *arguments: Any) -> Any:
        begin = time.perf_counter()
        try:
            return run(*arguments)
        finally:
            self.milliseconds += (time.perf_counter() - begin) * 1e3

    def _run_values(self, session: Any, feeds: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
        value_type = self._ort.OrtValue
        if not _are_numbers(feeds):
            raise Unsupported(f"outputs {', '.join(names)} have types that numpy lacks, and an input is a text or a list")
        values = {
            name: feed if isinstance(feed, value_type) else value_type.ortvalue_from_numpy(np.ascontiguousarray(feed))
            for name, feed in feeds.items()
        }
        results = self._timed(session.run_with_ort_values, names, values)
        return {name: _array_of(value) for name, value in zip(names, results, strict=True)}


def weight_bytes(model: _core.Model) -> int:
    """Bytes of the weights of the main graph."""
    return sum(weight.tensor.nbytes for weight in model.initializers)


def _are_numbers(feeds: Mapping[str, Any]) -> bool:
    return not any(isinstance(feed, list) or getattr(feed, "dtype", None) == object for feed in feeds.values())


def _element_of(type_name: str) -> str:
    """"tensor(bfloat16)" -> "bfloat16"."""
    return type_name.partition("(")[2].rstrip(")")


def _bytes_at(address: int, count: int) -> bytes:
    return ctypes.string_at(address, count) if count else b""


def _array_of(value: Any) -> Any:
    element = _element_of(value.data_type())
    if element not in _WITHOUT_NUMPY:
        return value.numpy()
    # A value on another device comes to the host by way of a copy that numpy cannot hold.
    if value.device_name().lower() != "cpu":
        raise Unsupported(f"a value of type {element} is on {value.device_name()}; it must be on the CPU to be read")
    return _core.Tensor.from_bytes(_bytes_at(value.data_ptr(), value.tensor_size_in_bytes()), element, value.shape())
