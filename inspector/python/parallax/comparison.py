# SPDX-License-Identifier: Apache-2.0
"""The result of a comparison of two sides: its document, in Python's terms, and the reports that can be made of it."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from parallax import _core
from parallax._sentences import ArgumentNames, translated
from parallax.errors import Error

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from parallax._arguments import JobOptions

__all__ = ["Cause", "ComparedValue", "Comparer", "Comparison", "Execution", "FirstDivergence", "Source", "Summary"]

_Row = TypeVar("_Row")


@dataclass(frozen=True)
class Source:
    """The source that a node was exported from: its module, line and operator; "" where the exporter did not say."""

    module: str = ""
    line: str = ""
    operator: str = ""


@dataclass(frozen=True)
class Cause:
    """A node that is to blame, with the severity that it introduced and the one that it inherited.

    ``side``: "A", "B", "both" or "unknown". ``node`` is the node in A's model, ``node_b`` B's, None where it has none.
    ``group``: the nodes judged as one piece, where values between them were not captured.
    """

    rank: int
    node: str
    op: str
    path: str
    introduced: float
    inherited: float
    side: str
    why: str
    source: Source | None = None
    node_b: str | None = None
    group: tuple[str, ...] = ()


@dataclass(frozen=True)
class FirstDivergence:
    """The value that diverged first, in the order of execution, and the node that computes it."""

    path: str
    node: str | None
    op: str | None


@dataclass(frozen=True)
class Execution:
    """One side: an executor with its settings and the hash of its model."""

    name: str
    side: str
    device: str
    settings: Mapping[str, str]
    model_sha256: str
    wall_ms: float


@dataclass(frozen=True)
class Summary:
    """How many values there are, and how many of each verdict."""

    values: int
    compared: int
    passed: int
    diverged: int
    mistrusted: int
    not_compared: int


@dataclass(frozen=True)
class ComparedValue:
    """A value on both sides. ``a`` and ``b`` are its paths, None where a side lacks it.

    ``verdict``: "pass", "diverged", "mistrusted" or "not_compared" with a ``reason``. ``severity`` is 1 at the limit;
    None where nothing was compared, as are ``limit`` and ``metrics`` (max_abs, max_rel, rel_l2, worst_index, ...).
    ``accepted``: why a value beyond its limit passes ("reason", "evidence"); its ``severity`` stays above 1.
    """

    path: str
    a: str | None
    b: str | None
    matched_by: str
    node: str | None
    op: str | None
    dtype: str
    shape: tuple[int, ...]
    verdict: str
    severity: float | None
    limit: Mapping[str, Any] | None
    reason: str | None
    metrics: Mapping[str, Any] | None
    noise: Mapping[str, float] | None = None
    accepted: Mapping[str, str] | None = None
    side: str | None = None


class Comparison:
    """The result of a comparison of two sides; true where its verdict is "pass".

    Jobs return it: compare(), diff(), blame(). It is the document that ``parallax --json`` prints (``to_dict()``).

    >>> import parallax
    >>> c = parallax.compare("samples/fault_pair/A.onnx", against="samples/fault_pair/B.onnx")      # doctest: +SKIP
    >>> c.verdict, c.causes[0].node, c.causes[0].why                                                # doctest: +SKIP
    ('diverged', 'block1/depthwise_bn', 'attribute epsilon is 1e-05 (the default) in B and 0.001 in A')
    """

    def __init__(self, core: _core.Comparison, command: str = "") -> None:
        self._core = core
        self._command = command

    @cached_property
    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._core.json())
        return document

    @property
    def verdict(self) -> str:
        """"pass", "diverged", or "inconclusive" where nothing was compared or a graph output was not."""
        return self._core.verdict

    @property
    def reason(self) -> str:
        """Why it is inconclusive; "" otherwise."""
        return str(self._document.get("reason", ""))

    @cached_property
    def summary(self) -> Summary:
        """Counts of values by verdict."""
        return _made(Summary, self._document["summary"])

    @cached_property
    def causes(self) -> list[Cause]:
        """The nodes to blame, ranked; empty where nothing diverged."""
        return [_cause(row) for row in self._document["causes"]]

    @cached_property
    def first_divergence(self) -> FirstDivergence | None:
        """The value that diverged first; None where none did."""
        first = self._document["first_divergence"]
        return None if first is None else _made(FirstDivergence, first)

    @cached_property
    def executions(self) -> list[Execution]:
        """The two sides."""
        return [_made(Execution, row) for row in self._document["executions"]]

    @cached_property
    def values(self) -> list[ComparedValue]:
        """Every value, in A's order of execution."""
        return [_value(row) for row in self._document["values"]]

    @cached_property
    def expected(self) -> list[ComparedValue]:
        """Outputs against those of a test_data_set folder, where its inputs came from one."""
        return [_value(row) for row in self._document.get("expected", [])]

    @property
    def notes(self) -> list[str]:
        """The choices for generated inputs, a sentence each."""
        return [translated(note) for note in self._core.notes]

    @property
    def command(self) -> str:
        """The command line that repeats it; "" where models or inputs were in memory."""
        return self._command

    def to_dict(self) -> dict[str, Any]:
        """Returns the document that the program prints with ``--json``. Do not change it."""
        return self._document

    def text(self, top: int = 10) -> str:
        """Returns what the program prints; ``top``: how many values, the worst first, or -1 for all in order."""
        return self._core.text(top)

    def svg(self, path: str = "", steps: int = 2) -> str:
        """Returns a picture of the graph around a value, by default the first cause's.

        It shows the nodes within ``steps`` edges, colored by severity. "" where there is nothing to show.
        """
        return self._core.svg(path, steps)

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame, a row for each value; metrics are columns."""
        return _package("pandas").DataFrame(self._rows())

    def to_polars(self) -> Any:
        """Returns a polars.DataFrame, a row for each value; metrics are columns."""
        return _package("polars").DataFrame(self._rows(), infer_schema_length=None)

    def to_arrow(self) -> Any:
        """Returns a pyarrow.Table, a row for each value; metrics are columns."""
        return _package("pyarrow").Table.from_pylist(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [_row(value) for value in self.values]

    def save_html(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes a report for a browser, all in one file. Returns the path.

        This and the other save_...() raise UsageError for a file that was compared and, without ``force``, for one that
        Parallax did not write; IoError.
        """
        return self._save("html", path, force)

    def save_csv(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes a table of all values. Returns the path."""
        return self._save("csv", path, force)

    def save_junit(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the verdict and every value as test cases for a CI server. Returns the path."""
        return self._save("junit", path, force)

    def save_svg(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the whole graph, colored by severity. Raises UsageError where two dumps hold no graph."""
        return self._save("svg", path, force)

    def save_dot(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the whole graph, colored by severity, for Graphviz. Raises UsageError as save_svg does."""
        return self._save("dot", path, force)

    def save_netron(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes severities as an attachment for Netron. Returns the path."""
        return self._save("netron", path, force)

    def save_model_explorer(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes severities as node data for Model Explorer. Returns the path."""
        return self._save("model-explorer", path, force)

    def _save(self, kind: str, path: str | os.PathLike[str], force: bool) -> Path:
        with ArgumentNames("save"):
            self._core.save(kind, os.fspath(path), self._command, force)
        return Path(path)

    def __bool__(self) -> bool:
        return self.verdict == "pass"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        counts = self.summary
        text = f"{counts.diverged} of {counts.compared} values diverged"
        if self.causes:
            cause = self.causes[0]
            text += f", first cause {cause.node!r} ({cause.op}): {cause.why}"
        elif self.reason:
            text += f"; {self.reason}"
        return _core.printable(f"<parallax.Comparison {self.verdict}: {text}>")

    def _repr_html_(self) -> str:
        from parallax import _report

        return _report.frame_of(self)


class Comparer:
    """Two sides that are prepared once and compared at every call: for who calls a model again and again.

    ``against``: a second model as side B, which gets the same inputs. Other arguments are compare()'s. A call costs
    what a comparison costs; nothing is kept. Calls from several threads are made one after another.

    >>> import numpy as np, parallax
    >>> from parallax.comparison import Comparer
    >>> comparer = Comparer("samples/cnn/model.onnx", executors=("reference", "cpu"))               # doctest: +SKIP
    >>> outputs, comparison = comparer.run({"image": np.ones((2, 3, 32, 32), np.float32)})          # doctest: +SKIP
    >>> comparison.verdict, outputs["log_probabilities"].shape                                      # doctest: +SKIP
    ('pass', (2, 10))
    """

    def __init__(
        self,
        model: Any,
        against: Any = None,
        *,
        executors: str | Sequence[str] | None = None,
        only: str | Sequence[str] = (),
        **options: Unpack[JobOptions],
    ) -> None:
        from parallax import _arguments as arguments

        request = arguments.request_of("Comparer", options, (arguments.JobOptions,))
        request["model"] = arguments.model_of(model)
        if against is not None and against is not model:
            request["against"] = arguments.model_of(against)
        arguments.set_names(request, executors=executors, only=only)
        with ArgumentNames("Comparer"):
            self._core = _core.Comparer(request)

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        kind: Literal["numpy", "torch", "tensor"] | None = None,
        blame: bool = False,
    ) -> tuple[Any, Comparison]:
        """Runs both sides at once and returns B's outputs and the comparison.

        ``inputs``: arrays by name, for outputs by name; or in the model's order, for a list of outputs. They are of the
        inputs' kind, or of ``kind``. ``blame``: where the sides differ, both run once more to fill the causes. Raises
        UsageError, ExecutionError.
        """
        outputs, comparison, _ = self.run_both(inputs, kind=kind, blame=blame)
        return outputs, comparison

    def run_both(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        kind: Literal["numpy", "torch", "tensor"] | None = None,
        blame: bool = False,
    ) -> tuple[Any, Comparison, Any]:
        """The pairs of outputs with A's as a third."""
        given = dict(inputs) if isinstance(inputs, Mapping) else list(inputs)
        with ArgumentNames("Comparer"):
            outputs, comparison, of_a = self._core.run(given, kind, blame)
        return outputs, Comparison(comparison), of_a


def _number(value: Any) -> float:
    """The documents write numbers that are not finite as "nan", "inf" and "-inf"."""
    return float(value)


def _made(kind: type[_Row], row: Mapping[str, Any]) -> _Row:
    """A dataclass of the keys that it knows; a later document may have more."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in row.items() if name in names})


def _cause(row: Mapping[str, Any]) -> Cause:
    source = row.get("source")
    return _made(Cause, {
        **row, "introduced": _number(row["introduced"]), "inherited": _number(row["inherited"]),
        "source": None if source is None else _made(Source, source), "group": tuple(row.get("group", ())),
    })  # fmt: skip


def _value(row: Mapping[str, Any]) -> ComparedValue:
    severity, metrics = row["severity"], row["metrics"]
    if metrics is not None:
        metrics = {name: _number(item) if isinstance(item, str) else item for name, item in metrics.items()}
    return _made(ComparedValue, {
        **row, "shape": tuple(row["shape"]), "severity": None if severity is None else _number(severity),
        "metrics": metrics,
    })  # fmt: skip


_METRICS = (
    "max_abs", "max_rel", "mean_abs", "rmse", "rel_l2", "cosine", "snr_db", "max_ulp", "mismatches", "nan_a", "nan_b",
    "inf_a", "inf_b", "worst_index", "worst_a", "worst_b",
)  # fmt: skip
_COUNTS = ("mismatches", "nan_a", "nan_b", "inf_a", "inf_b")


def _row(value: ComparedValue) -> dict[str, Any]:
    """A value as columns of one type each."""
    names = ("path", "a", "b", "matched_by", "node", "op", "dtype", "verdict", "severity", "reason")
    row = {name: getattr(value, name) for name in names}
    row["shape"] = list(value.shape)
    for name in ("rtol", "atol"):
        row[name] = None if value.limit is None else _number(value.limit[name])
    row["limit_from"] = None if value.limit is None else value.limit["from"]
    metrics = value.metrics or {}
    for name in _METRICS:
        item = metrics.get(name)
        row[name] = item if item is None or name in _COUNTS or name == "worst_index" else _number(item)
    return row


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise MissingPackage(
            f"the package {name} is not installed; pip install 'parallax-onnx[tables]' installs what tables need"
        ) from missing


class MissingPackage(Error, ImportError):
    """An optional package is not installed."""

    kind = "usage"
    _default_code = 2
