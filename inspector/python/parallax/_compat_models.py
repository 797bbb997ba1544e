# SPDX-License-Identifier: Apache-2.0
"""onnx_generate, get_keep_fp32_nodes and convert_fp16, by the parameters that example scripts use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parallax.errors import UsageError
from parallax.generation import Generator
from parallax.model_jobs import audit_fp16, convert

__all__ = ["convert_fp16", "get_keep_fp32_nodes", "onnx_generate"]


def onnx_generate(
    model_or_path: Any,
    input_ids: Any,
    eos_token_id: int,
    max_new_tokens: int = 100,
    do_sample: bool = False,
    return_session: bool = False,
    verbose: int = 0,
    attention_mask: Any = None,
) -> Any:
    """Generates tokens after ``input_ids`` [rows, positions]; returns prompt and new tokens as a torch tensor.

    ``model_or_path``: a decoder with a cache (path, ModelProto, Model), or the session of an earlier call. With
    ``return_session`` the answer is (tokens, session, inputs of the first step).

    >>> from parallax.compat import onnx_generate
    >>> tokens, session, _ = onnx_generate("model.onnx", ids, 2, 2, return_session=True)            # doctest: +SKIP
    >>> onnx_generate(session, ids, eos_token_id=2, max_new_tokens=100).shape                       # doctest: +SKIP
    torch.Size([1, 123])
    """
    import torch

    generator = model_or_path if isinstance(model_or_path, Generator) else Generator(model_or_path)
    made = generator.generate(
        input_ids, attention_mask, eos_token_id=eos_token_id, max_new_tokens=max_new_tokens, do_sample=do_sample
    )
    if verbose:
        print(made)
    sequences = torch.from_numpy(made.sequences)
    if not return_session:
        return sequences
    feeds = {"input_ids": input_ids} if attention_mask is None else {"input_ids": input_ids, "attention_mask": attention_mask}
    return sequences, generator, feeds


def get_keep_fp32_nodes(
    onnx_model_path: Any, get_input: Callable[[], Mapping[str, Any]], early_stop: int = 100, device: str = "cpu"
) -> list[str]:
    """Returns the names of the nodes that must stay in float32, from inputs that ``get_input`` returns one after another.

    It ends after ``early_stop`` input sets in a row that add none.

    >>> from parallax.compat import get_keep_fp32_nodes
    >>> get_keep_fp32_nodes("encoder.onnx", get_input, early_stop=10)                               # doctest: +SKIP
    ['node_Pow_12', 'node_ReduceMean_13']
    """
    if device != "cpu":
        raise UsageError(f"device is {device!r}; models are watched on 'cpu'")
    return audit_fp16(onnx_model_path, lambda: _on_host(get_input()), until_stable=early_stop).keep


def convert_fp16(onnx_model: Any, nodes_to_exclude: Sequence[str]) -> Any:
    """Returns the model in float16 as an onnx.ModelProto; ``nodes_to_exclude`` stay in float32.

    >>> from parallax.compat import convert_fp16
    >>> proto = convert_fp16("encoder.onnx", nodes_to_exclude=["node_Pow_12"])                      # doctest: +SKIP
    """
    return convert(onnx_model, "float16", keep=list(nodes_to_exclude)).model.to_onnx()


def _on_host(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.cpu() if hasattr(value, "cpu") else value for name, value in inputs.items()}
