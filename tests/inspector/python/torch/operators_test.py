# SPDX-License-Identifier: Apache-2.0
"""Every operator of the table trains: result and gradients by both executors are eager's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from functorch.compile import aot_function
from operator_cases import CASES, REFUSED, arguments_of

import parallax
from parallax.torch._decompositions import decompositions
from parallax.torch._fx import ConversionError, convert, tracing_context
from parallax.torch._random import lift_randomness

TABLE = decompositions()
TOLERANCES = {torch.float32: 3e-5, torch.float16: 2e-3}


def compiler_on_both(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[[list[Any]], list[Any]]:
    """A compiler for aot_autograd: cpu's results, after they have been compared with the reference's."""
    lifted = lift_randomness(gm)
    converted = convert(lifted.graph_module, example_inputs)
    assert converted.decomposed == (), "the table left operators to a second trace"
    model = converted.to_bytes()
    sessions = [parallax.Session(model, executor=name) for name in ("reference", "cpu")]

    def call(boxed: list[Any]) -> list[Any]:
        inputs = [*boxed, *lifted.draw(boxed)]
        boxed.clear()
        feeds = converted.feeds(inputs)
        reference, fast = ([found[n] for n in converted.output_names] for found in (
            session.run(feeds, kind="torch") for session in sessions))
        for spec in converted.outputs:
            if spec.kind == "tensor":
                assert_near(fast[spec.index], reference[spec.index], f"cpu's {spec.name}")
                pair = (2,) if spec.value.dtype.is_complex else ()
                assert tuple(fast[spec.index].shape) == (*spec.value.shape, *pair), spec.name
        return converted.assemble(fast, inputs)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def assert_near(found: torch.Tensor, expected: torch.Tensor, what: str, tolerance: float | None = None) -> None:
    assert found.shape == expected.shape and found.dtype == expected.dtype, what
    if not expected.dtype.is_floating_point:
        assert torch.equal(found, expected), what
        return
    limit = tolerance or TOLERANCES.get(expected.dtype, 1e-5)
    scale = expected.abs().max().item() if expected.numel() else 0.0
    assert torch.allclose(found, expected, rtol=0, atol=limit * (scale + 1e-6), equal_nan=True), (
        f"{what} is up to {(found - expected).abs().max().item():.3g} off where the largest is {scale:.3g}")


def results_of(function: Callable[..., torch.Tensor], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """The result of a function and the gradients of its arguments, at one seed."""
    arguments = arguments_of(tensors)
    torch.manual_seed(0)
    result = function(*arguments)
    (result * torch.linspace(0.5, 1.5, result.numel()).reshape(result.shape)).sum().backward()
    return [result.detach(), *(a.grad for a in arguments if a.requires_grad)]


def compiled(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return aot_function(function, fw_compiler=compiler_on_both, bw_compiler=compiler_on_both, decompositions=TABLE)


@pytest.mark.parametrize("name", CASES)
def test_trains_as_eager(name: str) -> None:
    function, tensors = CASES[name]
    expected = results_of(function, tensors)
    with tracing_context(grad=True):
        found = results_of(compiled(function), tensors)
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            what = f"the gradient of floating argument {number}" if number else "the result"
            assert_near(a, b, what, TOLERANCES[torch.float16] if name == "float16" else None)


@pytest.mark.parametrize("name", ["attention", "attention_mask"])
def test_attention_of_eager_kernels_trains(name: str) -> None:
    function, tensors = CASES[name]
    expected, found = results_of(function, tensors), results_of(compiled(function), tensors)
    for a, b in zip(found, expected, strict=True):
        assert a is not None and b is not None
        assert_near(a, b, name)


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_by_name(name: str) -> None:
    function, tensors, operator = REFUSED[name]
    with pytest.raises(ConversionError) as caught:
        results_of(compiled(function), tensors)
    assert operator in str(caught.value) and 'fallback="eager"' in str(caught.value)
    assert operator in {found.operator for found in caught.value.operators}
    assert isinstance(caught.value, parallax.Unsupported)
