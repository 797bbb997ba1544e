# SPDX-License-Identifier: Apache-2.0
"""Jobs that make models for language models: decoders merged, half precision audited and converted."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parallax import _arguments as arguments
from parallax import _files
from parallax._arguments import Paths
from parallax._report import framed
from parallax._results import _Document
from parallax._sentences import shown, size_text, translated, whole
from parallax.comparison import _package
from parallax.errors import UsageError
from parallax.model import Model, load

__all__ = ["Conversion", "HalfAudit", "MergedDecoders", "audit_fp16", "convert", "merge_decoders"]


# The name in documents and texts for a file that was not asked for.
_IN_MEMORY = "the model in memory"


class _MadeModel(_Document):
    """The document of a job that wrote a model, and the model."""

    def __init__(self, answer: dict[str, Any], model: Model) -> None:
        super().__init__(answer)
        self.model: Model = model
        """The model that was made."""
        self.passed: bool = answer["passed"]
        """Whether it was verified, or nothing was asked of it."""
        self.notes: list[str] = [translated(note) for note in answer["notes"]]

    @property
    def output(self) -> Path | None:
        """The file that was written; None where the model is in memory alone."""
        output: str | None = self._document["output"]
        return None if output is None else Path(output)

    @property
    def verification(self) -> dict[str, Any] | None:
        """The verification with its "verdict"; None where nothing was asked for."""
        verification: dict[str, Any] | None = self._document["verification"]
        return verification

    def _outcome(self) -> str:
        """The model's path and its verification, for a line about it."""
        verdict = "not verified" if self.verification is None else f"verification {self.verification['verdict']}"
        return f"{'in memory' if self.output is None else repr(str(self.output))}, {verdict}"


class MergedDecoders(_MadeModel):
    """Two decoders as one model; ``merged.model`` is it."""

    @property
    def condition(self) -> str:
        """The name of the input that chooses the branch, true with a cache."""
        return str(self._document["condition"])

    def __repr__(self) -> str:
        weights = self._document["weights"]
        first, second, merged = (size_text(weights["bytes"][name]) for name in ("first", "second", "merged"))
        return (
            f"<parallax.MergedDecoders by {self.condition!r}: {weights['shared']} weights shared, {first} and {second} -> "
            f"{merged}; {self._outcome()}>"
        )


class Conversion(_MadeModel):
    """A model in half precision; ``conversion.model`` is it."""

    def __repr__(self) -> str:
        nodes, weights = self._document["nodes"], self._document["weights_bytes"]
        kept = nodes["kept"] + len(nodes["without_half"])
        return (
            f"<parallax.Conversion to {self._document['to']}: {nodes['converted']} nodes converted, {kept} in float32, "
            f"{self._document['casts']} casts, weights {size_text(weights['before'])} -> {size_text(weights['after'])}; "
            f"{self._outcome()}>"
        )


class HalfAudit(_Document):
    """The effect of half precision on each node of a model; ``audit.keep`` is what convert(keep=...) takes.

    >>> import parallax
    >>> audit = parallax.audit_fp16("samples/cnn/model.onnx")                                       # doctest: +SKIP
    >>> audit.passed, audit.keep, audit.counts["free"]                                              # doctest: +SKIP
    (True, [], 31)
    """

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer)
        self.passed: bool = answer["passed"]
        """Whether the model converted with ``keep`` is within the tolerance on all inputs."""
        self.notes: list[str] = [translated(note) for note in answer["notes"]]
        self._html: str = answer["html"]
        self._csv: str = answer["csv"]
        self._read: list[str] = answer["read"]

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

    def save_html(self, path: Paths, *, force: bool = False) -> Path:
        """Writes a page with each node's range on a logarithmic axis against the limits of both types. Returns the path.

        Raises UsageError for the model's file and, without ``force``, for one that Parallax did not write; IoError.
        """
        return _files.write_text(path, self._html, force, self._read)

    def save_csv(self, path: Paths, *, force: bool = False) -> Path:
        """Writes the rows of nodes. Returns the path. Raises as save_html() does."""
        return _files.write_text(path, self._csv, force, self._read)

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame, a row for each node. Needs pandas."""
        rows = [{**row, "source": (row["source"] or {}).get("operator")} for row in self.nodes]
        return _package("pandas").DataFrame(rows)

    def __repr__(self) -> str:
        to, inputs, verification = self._document["to"], self._document["inputs"], self._document["verification"]
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return (
            f"<parallax.HalfAudit to {to} on {inputs} input set{'' if inputs == 1 else 's'}: {counts}; "
            f"{len(self.keep)} nodes to keep, relative error {float(verification['kept']['rel_l2']):.3g} with them: "
            f"{verification['verdict']}>"
        )

    def _repr_html_(self) -> str:
        return framed(self._html, "Audit of half precision", 640)


def merge_decoders(
    decoder: Any,
    decoder_with_past: Any,
    output: Paths | None = None,
    *,
    condition: str = "use_cache_branch",
    verify: bool | Paths = False,
    force: bool = False,
) -> MergedDecoders:
    """Joins a decoder's first step and its later ones by an If on a new input; every weight is stored once.

    ``decoder``, ``decoder_with_past``: what load() takes. ``output``: the file to write (None: the model is only
    returned). ``condition``: name of the new input, bool [1], true with a cache. ``verify``: run both branches and both
    models on reference and cpu, bit by bit; a folder of test_data_set_N is compared, too. ``force``: ``output`` may be
    a file that Parallax did not write; one of the models never. Raises UsageError, Unsupported (operator sets or
    interfaces that differ), InvalidModel, IoError.

    >>> import parallax
    >>> first, later = "samples/decoder/first_step.textproto", "samples/decoder/model.textproto"
    >>> merged = parallax.merge_decoders(first, later, verify=True)                                # doctest: +SKIP
    >>> merged.passed, merged.condition, merged.to_dict()["weights"]["shared"]                     # doctest: +SKIP
    (True, 'use_cache_branch', 30)
    """
    request: dict[str, Any] = {"first": arguments.model_of(decoder), "later": arguments.model_of(decoder_with_past)}
    request["verify"] = verify is not False and verify is not None
    if not isinstance(verify, (bool, str, os.PathLike)) and verify is not None:
        raise UsageError(f"verify is {shown(verify)}; it must be True, False, or the folder of a data set")
    if not isinstance(verify, bool):
        arguments.set_texts(request, data=verify)
    arguments.set_texts(request, condition=condition)
    request["force"] = force
    return MergedDecoders(*_made("merge-decoders", request, output))


def convert(
    model: Any,
    to: str = "float16",
    output: Paths | None = None,
    *,
    keep: str | Sequence[str] = (),
    keep_file: Paths | None = None,
    keep_io: bool = False,
    verify: Paths | Mapping[str, Any] | None = None,
    tolerance: float = 1e-2,
    force: bool = False,
) -> Conversion:
    """Makes a model whose float32 tensors are float16 or bfloat16; nothing is clamped.

    ``keep``, ``keep_file``: nodes that stay in float32, names or globs: ``audit_fp16(...).keep``. ``keep_io``: inputs
    and outputs stay float32. ``output``: the file to write (None: the model is only returned). ``verify``: arrays by name,
    or a test_data_set folder, .npz or .safetensors file, that both models are run on; ``tolerance``: of the relative error
    of an output. ``force``: ``output`` may be a file that Parallax did not write; the model never. Raises UsageError (a
    node that there is not), Unsupported, InvalidModel, IoError.

    >>> import numpy as np, parallax
    >>> image = {"image": np.ones((1, 3, 32, 32), np.float32)}
    >>> conversion = parallax.convert("samples/cnn/model.onnx", "float16", verify=image)           # doctest: +SKIP
    >>> conversion.passed, conversion.to_dict()["casts"], conversion.model.inputs[0].dtype         # doctest: +SKIP
    (True, 0, 'float16')
    """
    request: dict[str, Any] = {"model": arguments.model_of(model), "keep_io": keep_io, "tolerance": _limit(tolerance)}
    request["force"] = force
    arguments.set_names(request, keep=keep)
    if not isinstance(verify, Mapping):
        arguments.set_texts(request, to=to, keep_file=keep_file, verify=verify)
        return Conversion(*_made("convert", request, output))
    arguments.set_texts(request, to=to, keep_file=keep_file)
    with tempfile.TemporaryDirectory(prefix="parallax-") as folder:
        request["verify"] = os.path.join(folder, "inputs.npz")
        arrays: dict[str, Any] = {str(name): np.asarray(array) for name, array in verify.items()}
        _files.write_archive(request["verify"], arrays)
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
    Unsupported, InvalidModel, IoError, ExecutionError, KeyboardInterrupt.

    >>> import parallax
    >>> audit = parallax.audit_fp16("samples/cnn/model.onnx", [None, None])                         # doctest: +SKIP
    >>> parallax.convert("samples/cnn/model.onnx", keep=audit.keep).passed                          # doctest: +SKIP
    True
    """
    if callable(inputs):
        if whole("until_stable", until_stable) < 1:
            raise UsageError(
                f"inputs is a function and until_stable is {shown(until_stable)}; it must be the number of sets in a row "
                "that add no node, after which the function is asked no more"
            )
        following = _asked(inputs)
    else:
        following = _listed([None] if inputs is None else inputs)
    request: dict[str, Any] = {
        "model": arguments.model_of(model), "next_inputs": following, "until_stable": until_stable,
        "tolerance": _limit(tolerance), "minimise": minimise, "half_sums": half_sums,
    }  # fmt: skip
    arguments.set_names(request, feeds=feeds)
    arguments.set_texts(request, to=to, executor=executor)
    return HalfAudit(arguments.run_job("audit-fp16", request))


def _limit(tolerance: float) -> float:
    try:
        limit = float(tolerance)
    except (TypeError, ValueError):
        limit = math.nan
    if not limit >= 0:
        raise UsageError(f"tolerance is {shown(tolerance)}; it must be a number, 0 or more")
    return limit


def _asked(function: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda index: _input_set(function())


def _listed(inputs: Iterable[Any]) -> Callable[[int], Any]:
    if isinstance(inputs, (str, os.PathLike, Mapping)):
        inputs = [inputs]
    if not isinstance(inputs, Iterable):
        raise UsageError(
            f"inputs is {shown(inputs)}; it must be a list of input sets, each a mapping of arrays by name, the path of a "
            "data set or None for generated ones, or a function that returns the next one"
        )
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
        f"an input set is {shown(given)}; it must be a mapping of arrays by name, the path of a data set, or "
        "None for generated ones"
    )


def _made(verb: str, request: dict[str, Any], output: Paths | None) -> tuple[dict[str, Any], Model]:
    """Runs a job that writes a model, into a folder that is gone afterwards where no file was asked for."""
    if output is not None:
        arguments.set_texts(request, output=output)
        return arguments.run_job(verb, request), load(output)
    with tempfile.TemporaryDirectory(prefix="parallax-") as folder:
        path = os.path.join(folder, "model.onnx")
        answer = arguments.run_job(verb, {**request, "output": path})
        answer["json"] = answer["json"].replace(json.dumps(path), "null")
        answer["text"] = answer["text"].replace(f"wrote {path}: ", "").replace(path, _IN_MEMORY)
        answer["notes"] = [note for note in answer["notes"] if path not in note]
        return answer, load(Path(path).read_bytes(), directory=folder)
