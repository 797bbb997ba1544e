# SPDX-License-Identifier: Apache-2.0
"""Jobs that make models for language models: decoders merged, half precision audited and converted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from parallax import _arguments as arguments
from parallax import _core
from parallax._arguments import Paths
from parallax._results import _Document
from parallax.errors import UsageError
from parallax.model import Model, load

__all__ = ["Conversion", "HalfAudit", "MergedDecoders", "audit_fp16", "convert", "merge_decoders"]


class _MadeModel(_Document):
    """The document of a job that wrote a model, and the model."""

    def __init__(self, answer: dict[str, Any], model: Model) -> None:
        super().__init__(answer)
        self.model: Model = model
        """The model that was made."""
        self.passed: bool = answer["passed"]
        """Whether it was verified, or nothing was asked of it."""
        self.notes: list[str] = answer["notes"]


class MergedDecoders(_MadeModel):
    """Two decoders as one model."""


class Conversion(_MadeModel):
    """A model in half precision."""


class HalfAudit(_Document):
    """What half precision does to each node of a model."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer)
        self.passed: bool = answer["passed"]
        """Whether the model converted with ``keep`` is within the tolerance on all inputs."""
        self.notes: list[str] = answer["notes"]
        self._html: str = answer["html"]
        self._csv: str = answer["csv"]

    @property
    def keep(self) -> list[str]:
        """The nodes that must stay in float32: what convert(keep=...) takes."""
        keep: list[str] = self._document["keep"]
        return keep

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """A row for each node, in execution order: node, op, class, why, max_abs, min_abs, ..."""
        nodes: list[dict[str, Any]] = self._document["nodes"]
        return nodes

    @property
    def counts(self) -> dict[str, int]:
        """Nodes by class: must, wide_sum, mask, inexact, infinite, free, not_float."""
        counts: dict[str, int] = self._document["counts"]
        return counts

    def save_html(self, path: Paths) -> None:
        """Writes a page with each node's range on a logarithmic axis against the limits of both types."""
        Path(path).write_text(self._html, encoding="utf-8")

    def save_csv(self, path: Paths) -> None:
        """Writes the rows of nodes."""
        Path(path).write_text(self._csv, encoding="utf-8")


def merge_decoders(
    decoder: Any,
    decoder_with_past: Any,
    output: Paths | None = None,
    *,
    condition: str = "use_cache_branch",
    verify: bool | Paths = False,
) -> MergedDecoders:
    """Joins a decoder's first step and its later ones by an If on a new input; every weight is stored once.

    ``decoder``, ``decoder_with_past``: what load() takes. ``output``: the file to write (None: the model is only
    returned). ``condition``: name of the new input, bool [1], true with a cache. ``verify``: run both branches and both
    models on reference and cpu, bit by bit; a folder of test_data_set_N is compared, too. Raises UsageError,
    Unsupported (operator sets or interfaces that differ).

    >>> import parallax
    >>> parallax.merge_decoders("decoder.onnx", "decoder_with_past.onnx", verify=True).passed      # doctest: +SKIP
    True
    """
    request: dict[str, Any] = {"first": arguments.model_of(decoder), "later": arguments.model_of(decoder_with_past)}
    request["verify"] = verify is not False
    if not isinstance(verify, bool):
        arguments.set_texts(request, data=verify)
    arguments.set_texts(request, condition=condition)
    return MergedDecoders(*_made("merge-decoders", request, output))


def convert(
    model: Any,
    to: str = "float16",
    output: Paths | None = None,
    *,
    keep: str | Sequence[str] = (),
    keep_file: Paths | None = None,
    keep_io: bool = False,
    verify: Paths | None = None,
    tolerance: float = 1e-2,
) -> Conversion:
    """Makes a model whose float32 tensors are float16 or bfloat16; nothing is clamped.

    ``keep``, ``keep_file``: nodes that stay in float32, names or globs: ``audit_fp16(...).keep``. ``keep_io``: inputs
    and outputs stay float32. ``verify``: a test_data_set folder, .npz or .safetensors file that both models are run on;
    ``tolerance``: of the relative error of an output. Raises UsageError (a node that there is not), Unsupported.

    >>> import parallax
    >>> parallax.convert("samples/cnn/model.onnx", "float16").to_dict()["casts"]                   # doctest: +SKIP
    0
    """
    request: dict[str, Any] = {"model": arguments.model_of(model), "keep_io": keep_io, "tolerance": tolerance}
    arguments.set_names(request, keep=keep)
    arguments.set_texts(request, to=to, keep_file=keep_file, verify=verify)
    return Conversion(*_made("convert", request, output))


def audit_fp16(
    model: Any,
    inputs: Iterable[Any] | Callable[[], Any] | None = None,
    *,
    to: str = "float16",
    executor: str = "cpu",
    until_stable: int = 0,
    feeds: str | Sequence[str] = (),
    tolerance: float = 1e-2,
    minimise: bool = False,
    half_sums: bool = False,
) -> HalfAudit:
    """Watches a model on data and says which nodes cannot compute in half precision; the answer is verified.

    ``inputs``: an iterable of input sets, each a mapping of arrays by name, the path of a data set, or None (generated);
    or a function without parameters that returns the next one, which is asked until ``until_stable`` sets in a row add
    no node. None: one generated set. ``feeds``: models that run first, "encoder.onnx:last_hidden_state=encoder_hidden_states".
    ``minimise``: drop what need not be kept. ``half_sums``: for kernels that add in half precision. Raises UsageError,
    Unsupported, ExecutionError, KeyboardInterrupt.

    >>> import parallax
    >>> audit = parallax.audit_fp16("model.onnx", [None, None])                                     # doctest: +SKIP
    >>> parallax.convert("model.onnx", keep=audit.keep, output="half.onnx").passed                  # doctest: +SKIP
    True
    """
    if callable(inputs):
        if until_stable < 1:
            raise UsageError("inputs are a function; until_stable must say after how many sets without news it is enough")
        following = _asked(inputs)
    else:
        following = _listed([None] if inputs is None else inputs)
    request: dict[str, Any] = {
        "model": arguments.model_of(model), "next_inputs": following, "until_stable": until_stable,
        "tolerance": tolerance, "minimise": minimise, "half_sums": half_sums,
    }  # fmt: skip
    arguments.set_names(request, feeds=feeds)
    arguments.set_texts(request, to=to, executor=executor)
    return HalfAudit(_core.run_job("audit-fp16", request))


def _asked(function: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda index: _input_set(function())


def _listed(inputs: Iterable[Any]) -> Callable[[int], Any]:
    if isinstance(inputs, (str, os.PathLike, Mapping)):
        inputs = [inputs]
    left = iter(inputs)

    def following(index: int) -> Any:
        for given in left:
            return _input_set(given)
        return None

    return following


def _input_set(given: Any) -> Any:
    if given is None:
        return {}
    if isinstance(given, (str, os.PathLike)):
        return os.fspath(given)
    if isinstance(given, Mapping):
        return dict(given)
    raise UsageError(
        f"an input set is a {type(given).__name__}; it must be a mapping of arrays by name, the path of a data set, or "
        "None for generated ones"
    )


def _made(verb: str, request: dict[str, Any], output: Paths | None) -> tuple[dict[str, Any], Model]:
    """Runs a job that writes a model, into a folder that is gone afterwards where no file was asked for."""
    if output is not None:
        arguments.set_texts(request, output=output)
        return _core.run_job(verb, request), load(output)
    with tempfile.TemporaryDirectory(prefix="parallax-") as folder:
        path = os.path.join(folder, "model.onnx")
        answer = _core.run_job(verb, {**request, "output": path})
        return answer, load(path)
