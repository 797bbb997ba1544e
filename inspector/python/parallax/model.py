# SPDX-License-Identifier: Apache-2.0
"""Models: read from files, bytes and the objects of other packages, looked at, rewritten and written."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parallax import _core
from parallax._core import Initializer, NodeInfo, ValueInfo
from parallax._sentences import ArgumentNames, kind_of
from parallax.errors import InvalidModel, UsageError

__all__ = ["Initializer", "Model", "NodeInfo", "ValueInfo", "load"]

# Bytes of a picture beyond which a notebook shows the graph's text instead.
_LARGEST_PICTURE = 3_000_000


class Model:
    """A model as it was read. It never changes: what transforms give is another one.

    >>> import parallax
    >>> model = parallax.load("samples/cnn/model.onnx")                   # doctest: +SKIP
    >>> model.inputs[0].name, model.inputs[0].shape                       # doctest: +SKIP
    ('image', ('batch', 3, 32, 32))
    """

    __slots__ = ("__weakref__", "_core")

    def __init__(self, source: Any) -> None:
        """Takes what load() takes."""
        self._core: _core.Model = source if isinstance(source, _core.Model) else load(source)._core

    @property
    def core(self) -> _core.Model:
        """The compiled object that it wraps."""
        return self._core

    @property
    def path(self) -> str:
        """The file it was read from, or a description."""
        return self._core.path

    @property
    def inputs(self) -> list[ValueInfo]:
        """Name, dtype and shape of each input; a dimension is a number, a name or None."""
        return self._core.inputs

    @property
    def outputs(self) -> list[ValueInfo]:
        """Name, dtype and shape of each output, inferred where the file declares none."""
        return self._core.outputs

    @property
    def initializers(self) -> list[Initializer]:
        """The weights of the main graph, with read-only views of their memory."""
        return self._core.initializers

    @property
    def nodes(self) -> list[NodeInfo]:
        """The nodes of the main graph, in execution order."""
        return self._core.nodes

    @property
    def opset_imports(self) -> dict[str, int]:
        """Version by domain; "" is ai.onnx."""
        return self._core.opset_imports

    @property
    def metadata(self) -> dict[str, str]:
        """The model's metadata_props."""
        return self._core.metadata

    def text(self, shapes: bool = False, depth: int = -1) -> str:
        """Returns the graph as text, a line a node; scopes below ``depth`` are folded into one line each."""
        return self._core.text(shapes, depth)

    def dot(self, depth: int = -1) -> str:
        """Returns the graph as text for Graphviz."""
        return self._core.dot(depth)

    def svg(self, depth: int | None = None) -> str:
        """Returns a picture of the graph by our own layout; with ``depth``, scopes below it are one box each.

        A picture with a depth is drawn by Graphviz's program ``dot``. Raises Unsupported where there is none.
        """
        return self._core.svg() if depth is None else self._core.svg_of_depth(depth)

    def to_bytes(self) -> bytes:
        """Returns the serialized model, weights inline. Raises Unsupported above 2 GB."""
        return self._core.to_bytes()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes .onnx, or text (.textproto); weights of more than 1 GB go to a file next to it. Returns the path.

        Raises UsageError for the file that the model was read from or one of its weights, and, without ``force``, for
        a file that Parallax did not write; IoError.
        """
        with ArgumentNames("save"):
            self._core.save(os.fspath(path), force)
        return Path(path)

    def to_onnx(self) -> Any:
        """Returns an onnx.ModelProto. Needs package onnx."""
        import onnx

        return onnx.load_from_string(self.to_bytes())

    def rewrite(self, patterns: str = "default") -> Model:
        """Returns the model as the cpu executor rewrites it.

        ``patterns``: a set ("standard", "standard+microsoft", "default", "all"), names, "-NAME" and "+NAME", separated by
        commas. Raises UsageError, naming an unknown pattern.
        """
        return self.rewrite_report(patterns)[0]

    def rewrite_report(self, patterns: str = "default") -> tuple[Model, dict[str, dict[str, int]]]:
        """The rewritten model and a report of the changes: "nodes" before and after, "custom_ops" by domain, patterns
        "applied".
        """
        with ArgumentNames("rewrite"):
            core, report = self._core.rewrite(patterns)
        return Model(core), report

    def freeze_inputs(self, values: Mapping[str, Any]) -> Model:
        """Returns a model whose named inputs are initializers.

        They share the given arrays' memory, which must not change afterwards. Raises UsageError where a name or a shape
        does not fit.
        """
        return Model(self._core.freeze_inputs(dict(values)))

    def extract(self, from_: Sequence[str], to: Sequence[str]) -> Model:
        """Returns what computes the values ``to`` from the values ``from_`` as a model of its own."""
        with ArgumentNames("extract"):
            return Model(self._core.extract(list(from_), list(to)))

    def values_as_outputs(self, paths: Sequence[str] = (), *, bodies: bool = True) -> Model:
        """Returns a model that gives back inner values, too: those at ``paths``, or all that nodes compute.

        A value of the main graph is an output of its name. Those of bodies have the name of their path with ``[*]`` for
        the iteration: of a Loop a sequence with an item for each iteration, of a Scan a tensor with one more axis, of an If
        an empty tensor where the branch did not run. What no output can hold is left out; ort.capture() says what.
        Raises UsageError for a path that names no value.

        >>> import parallax
        >>> model = parallax.load("samples/cnn/model.onnx").values_as_outputs(["linear"])         # doctest: +SKIP
        >>> [value.name for value in model.outputs]                                               # doctest: +SKIP
        ['log_probabilities', 'linear']
        """
        return Model(_core.values_as_outputs(self._core, list(paths), bodies)[0])

    def check(self) -> None:
        """Raises InvalidModel, naming everything that breaks the specification."""
        problems = self._core.check()
        if problems:
            raise InvalidModel("; ".join(f"{where}: {message}" for where, message in problems))

    def to_dict(self) -> dict[str, Any]:
        """Returns the graph as the document that ``parallax show --json`` prints."""
        document: dict[str, Any] = json.loads(self._core.json())
        return document

    def __repr__(self) -> str:
        inputs = ", ".join(f"{value.name}: {value.type}" for value in self.inputs)
        outputs = ", ".join(f"{value.name}: {value.type}" for value in self.outputs)
        return _core.printable(f"<parallax.Model {self.path!r}: {self._core.node_count} nodes, ({inputs}) -> ({outputs})>")

    def _repr_html_(self) -> str:
        picture = self.svg()
        if len(picture) > _LARGEST_PICTURE:
            text = self.text(depth=2).replace("&", "&amp;").replace("<", "&lt;")
            return f"<pre>{text}</pre>"
        data = base64.b64encode(picture.encode()).decode()
        return f'<div style="max-height:40em;overflow:auto"><img alt="graph" src="data:image/svg+xml;base64,{data}"></div>'


def load(source: Any, *, directory: str | os.PathLike[str] = "", validate: bool = True) -> Model:
    """Reads a model.

    ``source``: a path, bytes, an onnx.ModelProto, an onnx_ir.Model, a torch.onnx.ONNXProgram, or a Model, which is
    returned. ``directory`` is where the external data of bytes and protos is. Raises InvalidModel, Unsupported, IoError.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, _core.Model):
        return Model(source)
    folder = os.fspath(directory)
    if isinstance(source, (str, os.PathLike)):
        return Model(_core.Model.load(os.fspath(source), validate))
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Model(_core.Model.from_bytes(bytes(source), folder, "model in memory", validate))
    if hasattr(source, "SerializeToString") and hasattr(source, "graph"):
        return Model(_core.Model.from_bytes(source.SerializeToString(), folder, _name_of(source), validate))
    intermediate = _onnx_ir_model(source)
    if intermediate is not None:
        return _load_onnx_ir(intermediate, validate)
    raise UsageError(
        f"the model is {kind_of(source)}; it must be a path, bytes, an "
        "onnx.ModelProto, an onnx_ir.Model, a torch.onnx.ONNXProgram or a parallax.Model"
    )


def _name_of(proto: Any) -> str:
    return f"model '{proto.graph.name}'" if proto.graph.name else "model in memory"


def _onnx_ir_model(source: Any) -> Any:
    """The onnx_ir.Model that ``source`` is or, for an ONNXProgram, holds; None for anything else."""
    kind = type(source)
    if kind.__name__ == "ONNXProgram" and hasattr(source, "model"):
        return source.model
    return source if kind.__module__.partition(".")[0] in ("onnx_ir", "onnxscript") and hasattr(source, "graph") else None


def _load_onnx_ir(model: Any, validate: bool) -> Model:
    import onnx_ir

    limit = 2_000_000_000  # of a protobuf message
    held = sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value is not None)
    if held < limit:
        proto = onnx_ir.to_proto(model)
        return Model(_core.Model.from_bytes(proto.SerializeToString(), "", _name_of(proto), validate))
    # The weights are mapped, so that the folder may go: its memory stays until the model does.
    with tempfile.TemporaryDirectory(prefix="parallax-") as folder:
        path = os.path.join(folder, "model.onnx")
        onnx_ir.save(model, path, external_data="weights.data")
        return Model(_core.Model.load(path, validate))
