# SPDX-License-Identifier: Apache-2.0
"""torch tensors in and out: every type, addresses, gradients, strides, and results of torch inputs."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import onnx
import parallax
import pytest
import torch
from onnx import TensorProto, helper
from small_models import build, unary, value

TYPES = {
    torch.float16: "float16", torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "bfloat16",
    torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64", torch.uint8: "uint8",
    torch.uint16: "uint16", torch.uint32: "uint32", torch.uint64: "uint64", torch.bool: "bool",
    torch.complex64: "complex64", torch.complex128: "complex128",
    torch.float8_e4m3fn: "float8e4m3fn", torch.float8_e5m2: "float8e5m2",
    torch.float8_e4m3fnuz: "float8e4m3fnuz", torch.float8_e5m2fnuz: "float8e5m2fnuz",
}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type_shares_memory_both_ways(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0, 1, 2], [3, 1, 0]]).to(dtype)
    tensor = parallax.Tensor(x)
    assert (tensor.dtype, tensor.shape, tensor.address) == (TYPES[dtype], (2, 3), x.data_ptr())
    back = tensor.torch()
    assert (back.dtype, back.data_ptr(), back.shape) == (dtype, x.data_ptr(), x.shape)
    other = torch.from_dlpack(tensor)
    assert other.dtype == dtype and other.data_ptr() == x.data_ptr()
    assert bytes(back.view(torch.uint8).numpy().tobytes()) == bytes(x.view(torch.uint8).numpy().tobytes())


def test_gradients_are_not_kept() -> None:
    x = torch.ones(3, requires_grad=True)
    tensor = parallax.Tensor(x)
    assert tensor.address == x.data_ptr() and not tensor.torch().requires_grad
    y = parallax.Session(unary("Neg")).run({"x": x})["y"]
    assert isinstance(y, torch.Tensor) and not y.requires_grad and y.tolist() == [-1, -1, -1]


def test_views_that_are_not_contiguous_are_copied() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    for view in (x.t(), x[:, ::2], x.expand(2, 3, 4), torch.complex(x, x).conj().real):
        tensor = parallax.Tensor(view)
        np.testing.assert_array_equal(tensor.numpy(), view.numpy())
    conjugate = torch.complex(x, x).conj()
    np.testing.assert_array_equal(parallax.Tensor(conjugate).numpy(), conjugate.resolve_conj().numpy())
    negative = torch.complex(x, x).conj().imag
    np.testing.assert_array_equal(parallax.Tensor(negative).numpy(), negative.resolve_neg().numpy())


def test_tensors_without_dense_memory_are_refused() -> None:
    for odd in (torch.eye(3).to_sparse(), torch.empty(3, device="meta")):
        with pytest.raises(parallax.UsageError, match="torch tensor"):
            parallax.Tensor(odd)


def test_read_only_memory_is_copied_for_torch() -> None:
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    tensor = parallax.Tensor(array)
    assert tensor.torch().data_ptr() != tensor.address


@pytest.mark.parametrize("executor", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.BFLOAT16, TensorProto.FLOAT16], ids=["float", "bfloat16", "half"])
def test_torch_inputs_give_torch_outputs(dtype: int, executor: str) -> None:
    kind = {TensorProto.FLOAT: torch.float32, TensorProto.BFLOAT16: torch.bfloat16, TensorProto.FLOAT16: torch.float16}[dtype]
    session = parallax.Session(unary("Neg", dtype, ["n"]), executor)
    x = torch.tensor([1.0, -2.5]).to(kind)
    y = session.run({"x": x})["y"]
    assert y.dtype == kind and torch.equal(y, -x)
    y.add_(1)
    assert torch.equal(session.run([x])["y"], -x)


def test_results_share_no_memory_with_inputs_and_each_other() -> None:
    model = build(
        [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Identity", ["x"], ["z"])],
        [value("x", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, [3]), value("z", TensorProto.FLOAT, [3])],
    )
    x = torch.ones(3)
    out = parallax.Session(model).run({"x": x})
    assert len({x.data_ptr(), out["y"].data_ptr(), out["z"].data_ptr()}) == 3
    shared = parallax.Session(model, alias_outputs=True).run({"x": x})
    assert shared["y"].data_ptr() == x.data_ptr()


def test_mixed_inputs_give_torch() -> None:
    model = build([helper.make_node("Add", ["a", "b"], ["y"])],
                  [value("a", TensorProto.FLOAT, [2]), value("b", TensorProto.FLOAT, [2])], [value("y", TensorProto.FLOAT, [2])])
    y = parallax.Session(model).run({"a": np.ones(2, np.float32), "b": torch.ones(2)})["y"]
    assert isinstance(y, torch.Tensor) and y.tolist() == [2, 2]


def test_strings_stay_numpys_next_to_torch() -> None:
    model = build([helper.make_node("Identity", ["x"], ["y"])],
                  [value("x", TensorProto.STRING, [1])], [value("y", TensorProto.STRING, [1])])
    assert parallax.Session(model).run({"x": np.array(["a"])}, kind="torch")["y"].tolist() == ["a"]
    with pytest.raises(parallax.UsageError, match="no tensors of strings"):
        parallax.Tensor(np.array(["a"])).torch()


def test_models_of_other_packages() -> None:
    import onnx_ir

    proto = onnx.load_from_string(unary("Neg", TensorProto.FLOAT, [2]))
    intermediate = onnx_ir.from_proto(proto)
    program: Any = types.new_class("ONNXProgram")()
    program.model = intermediate
    for source in (intermediate, program):
        assert parallax.Session(source).run([np.ones(2, np.float32)])["y"].tolist() == [-1, -1]


def test_exported_programs() -> None:
    class Double(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    program = torch.onnx.export(Double(), (torch.ones(2, 3),), dynamo=True, verbose=False)
    model = parallax.load(program)
    assert model.inputs[0].dtype == "float32" and model.nodes[-1].op == "Mul"
    name = model.inputs[0].name
    outputs = parallax.Session(model).run({name: torch.ones(2, 3)})
    assert next(iter(outputs.values())).tolist() == [[2, 2, 2], [2, 2, 2]]


def test_numpy_results_need_no_torch() -> None:
    assert "torch" in sys.modules
    assert type(parallax.Session(unary("Neg")).run([np.ones(2, np.float32)])["y"]) is np.ndarray
