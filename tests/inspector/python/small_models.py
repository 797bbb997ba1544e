# SPDX-License-Identifier: Apache-2.0
"""Small models, built in memory, and a Python of its own for a piece of code: what the tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

MakeModel = Callable[..., bytes]


def value(name: str, dtype: int, shape: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    """An input or output of a model."""
    return helper.make_tensor_value_info(name, dtype, shape)


def build(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: dict[str, np.ndarray[Any, Any]] | None = None,
    opset: int = 18,
) -> bytes:
    """A serialized model of these nodes."""
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in (initializers or {}).items()]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9).SerializeToString()


def unary(op: str, dtype: int = TensorProto.FLOAT, shape: Sequence[int | str | None] | None = None, **attributes: Any) -> bytes:
    """A model y = op(x)."""
    return build(
        [helper.make_node(op, ["x"], ["y"], **attributes)], [value("x", dtype, shape)], [value("y", dtype, None)]
    )


def run_python(code: str, **environment: str) -> str:
    """Runs code in a Python of its own and returns what it printed. Fails the test with its output where it fails."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=240
    )
    if done.returncode != 0:
        pytest.fail(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
