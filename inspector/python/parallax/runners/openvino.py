# SPDX-License-Identifier: Apache-2.0
"""The runner of OpenVINO: values that are wanted become outputs of the network before it is compiled."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from parallax import _core
from parallax._memory import give_back_memory
from parallax.errors import ExecutionError, InvalidModel, Unsupported, UsageError
from parallax.model import Model
from parallax.runners._groups import absent_note, bytes_of, groups_within
from parallax.runners._requests import Answer, Description, Load, Run, answer_dump

__all__ = ["OpenVino", "make"]

# Element types that numpy lacks, as OpenVINO names them -> our name and the bytes of an element.
_WITHOUT_NUMPY = {"bf16": ("bfloat16", np.uint16), "f8e4m3": ("float8e4m3fn", np.uint8), "f8e5m2": ("float8e5m2", np.uint8)}


class OpenVino:
    """A model by OpenVINO on one device, "" for the CPU; compiled networks are kept from one run to the next."""

    def __init__(self, device: str = "") -> None:
        self._device = device or "CPU"
        self._loaded: tuple[Load, Model] | None = None
        self._plan: tuple[list[str], list[list[str]], list[str]] | None = None  # wanted; in groups; those without a value
        self._compiled: Any = None  # kept where there is one group
        self._core: Any = None

    def describe(self) -> Description:
        """Loads OpenVINO. Raises Unsupported where it is not installed, UsageError for a device that it lacks."""
        openvino = _package()
        core = self._core or openvino.Core()
        known = core.available_devices
        if self._device.partition(".")[0] not in {name.partition(".")[0] for name in known}:
            raise UsageError(f"device {self._device!r} is not available; this OpenVINO has {', '.join(known)}")
        self._core = core
        settings = {
            name.lower(): str(core.get_property(self._device, name))
            for name in ("INFERENCE_PRECISION_HINT", "EXECUTION_MODE_HINT")
            if name in core.get_property(self._device, "SUPPORTED_PROPERTIES")
        }
        return Description("openvino", str(openvino.__version__), self._device, settings, observes=True)

    def load(self, request: Load) -> None:
        """Takes a model; it is compiled in the first run, which says what is wanted."""
        self.describe()
        self._plan = self._compiled = None
        self._loaded = request, Model(request.model)
        _network(self._core, request.model)

    def run(self, request: Run) -> Answer:
        """Runs the network, once for each group of values that the limit of memory allows."""
        if self._loaded is None:
            raise UsageError("no model is loaded; 'load' comes before 'run'")
        load, model = self._loaded
        feeds = request.read_inputs(model)
        outputs = [value.name for value in model.outputs]
        wanted = list(dict.fromkeys([*outputs, *request.wanted]))
        groups, absent = self._groups(load, wanted)
        milliseconds = 0.0
        path = request.answer + ".plx"
        mode = {"execution_mode_hint": "PERFORMANCE" if load.optimize else "ACCURACY"}
        with answer_dump(path, self.describe(), model, mode) as dump:
            for group in groups:
                compiled = self._compiled or self._compile(load, group)
                self._compiled = compiled if len(groups) == 1 else None
                call = compiled.create_infer_request()
                begin = time.perf_counter()
                try:
                    given = {port: feeds[name] for port in compiled.inputs for name in port.get_names() if name in feeds}
                    call.infer(given, share_inputs=True, share_outputs=True)
                except RuntimeError as error:
                    raise ExecutionError(f"OpenVINO: {error}") from error
                milliseconds += (time.perf_counter() - begin) * 1e3
                for name, value in _values(call, compiled, wanted):
                    dump.write(_core.escape_name(name), value, is_graph_output=name in outputs)
                    wanted = [other for other in wanted if other != name]
                if len(groups) > 1:
                    del call, compiled
                    give_back_memory()
        return Answer(path, milliseconds, notes=absent_note(absent, "OpenVINO"))

    def _groups(self, load: Load, wanted: list[str]) -> tuple[list[list[str]], list[str]]:
        """Names in groups, and those that the network lacks."""
        if self._plan is None or self._plan[0] != wanted:
            self._compiled = None
            ports = _ports(_network(self._core, load.model))
            sizes = {name: _bytes_of(ports[name]) for name in wanted if name in ports}
            absent = [name for name in wanted if name not in ports]
            self._plan = list(wanted), groups_within(sizes, load.memory_limit_bytes), absent
        return self._plan[1], self._plan[2]

    def _compile(self, load: Load, names: list[str]) -> Any:
        network = _network(self._core, load.model)
        ports = _ports(network)
        results = {name for result in network.outputs for name in result.get_names()}
        network.add_outputs([ports[name] for name in names if name not in results])
        properties: dict[str, Any] = {"EXECUTION_MODE_HINT": "PERFORMANCE" if load.optimize else "ACCURACY"}
        if load.threads > 0 and self._device.startswith("CPU"):
            properties["INFERENCE_NUM_THREADS"] = load.threads
        try:
            return self._core.compile_model(network, self._device, properties)
        except RuntimeError as error:
            raise Unsupported(f"OpenVINO cannot compile the model: {error}") from error


def _package() -> Any:
    try:
        return importlib.import_module("openvino")
    except ImportError as error:
        raise Unsupported("OpenVINO is not installed; pip install openvino") from error


def _network(core: Any, path: str) -> Any:
    try:
        return core.read_model(path)
    except RuntimeError as error:
        kind = Unsupported if "not supported" in str(error) or "No conversion rule" in str(error) else InvalidModel
        raise kind(f"OpenVINO cannot read the model: {error}") from error


def _ports(network: Any) -> dict[str, Any]:
    """Name of a value -> the output of the operation that computes it."""
    return {
        name: port for operation in network.get_ordered_ops() for port in operation.outputs() for name in port.get_names()
    }  # fmt: skip


def _bytes_of(port: Any) -> int:
    """Bytes of a value, a free dimension counted as 1: nothing says its size before the run."""
    shape = [int(dim.get_length()) if dim.is_static else 1 for dim in port.get_partial_shape()] if (
        port.get_partial_shape().rank.is_static) else []
    return bytes_of(shape, max(port.get_element_type().size, 1))


def _values(call: Any, compiled: Any, wanted: list[str]) -> Iterator[tuple[str, Any]]:
    """(name, value) of the results that are wanted, each name once."""
    for port in compiled.outputs:
        value = None
        for name in port.get_names():
            if name in wanted:
                value = _value_of(call.get_tensor(port)) if value is None else value
                yield name, value


def _value_of(tensor: Any) -> Any:
    element = tensor.get_element_type().get_type_name()
    if element == "string":
        return np.array(tensor.str_data, dtype=object)
    if element not in _WITHOUT_NUMPY:
        return tensor.data
    name, words = _WITHOUT_NUMPY[element]
    return _core.Tensor(tensor.data.view(words), name)


def make(argument: str) -> OpenVino:
    """The runner of ``python -m parallax.runners openvino [DEVICE]``."""
    return OpenVino(argument)
