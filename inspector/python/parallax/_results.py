# SPDX-License-Identifier: Apache-2.0
"""Results of jobs other than comparisons: the program's documents with attributes in front."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from parallax import _core, _files
from parallax._sentences import translated
from parallax.comparison import Comparison

__all__ = [
    "BackendCase", "BackendTests", "Bench", "Doctor", "DoctorItem", "LateLibrary", "Latency", "NodeTime", "OperatorTime", "Part",
    "Profile", "RunResult",
]  # fmt: skip


class _Document:
    """A document of the program with its text."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._document: dict[str, Any] = json.loads(answer["json"])
        self._text: str = answer["text"]

    def to_dict(self) -> dict[str, Any]:
        """Returns the document that the program prints with ``--json``. Do not change it."""
        return self._document

    def __str__(self) -> str:
        return self._text


class RunResult(_Document):
    """The results of one run on one executor; ``result["name"]`` is an output."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer)
        self.outputs: dict[str, Any] = answer["outputs"]
        """Outputs by name, as arrays of the inputs' kind."""
        self.notes: list[str] = [translated(note) for note in answer["notes"]]
        """What was chosen for generated inputs, a sentence each."""
        self.written: list[Path] = [Path(path) for path in answer["written"]]
        """The dumps that were written."""
        core = answer["comparison"]
        self.comparison: Comparison | None = None if core is None else Comparison(core)
        """With the outputs that a test_data_set folder expects; None where there were none."""

    @property
    def execution(self) -> dict[str, Any]:
        """The executor with its settings, the model's hash and the time of the run."""
        execution: dict[str, Any] = self._document["execution"]
        return execution

    @property
    def statistics(self) -> dict[str, dict[str, Any] | None]:
        """min, max, mean, std, zeros, nan and inf of each output; None of one that is no tensor of numbers."""
        return {row["name"]: row.get("stats") for row in self._document["outputs"]}

    def __getitem__(self, name: str) -> Any:
        return self.outputs[name]

    def __repr__(self) -> str:
        outputs = ", ".join(f"{row['name']} {row['dtype']}{row['shape']}" for row in self._document["outputs"])
        verdict = "" if self.comparison is None else f", {self.comparison.verdict} against the expected outputs"
        return _core.printable(f"<parallax.RunResult on {self.execution['name']}: {outputs}{verdict}>")


@dataclass(frozen=True)
class Latency:
    """Milliseconds of a run."""

    min: float
    median: float
    p95: float


class Bench(_Document):
    """Latency and peak memory of a model."""

    @property
    def executor(self) -> str:
        """The executor's name."""
        return str(self._document["exec"])

    @property
    def iterations(self) -> int:
        """Timed runs."""
        return int(self._document["iterations"])

    @property
    def latency_ms(self) -> Latency:
        """Minimum, median and 95th percentile."""
        return Latency(**self._document["latency_ms"])

    @property
    def peak_bytes(self) -> int:
        """Most bytes of weights and values alive at once."""
        return int(self._document["peak_bytes"])

    @property
    def load_ms(self) -> float:
        """Time of reading and preparing the model."""
        return float(self._document["load_ms"])

    def __repr__(self) -> str:
        latency = self.latency_ms
        return (
            f"<parallax.Bench on {self.executor}: median {latency.median:.3f} ms of {self.iterations} runs, "
            f"peak {self.peak_bytes} bytes>"
        )


@dataclass(frozen=True)
class OperatorTime:
    """An operator: nodes executed in one run, milliseconds, share of the time of all operators (0 to 1)."""

    op: str
    count: int
    ms: float
    share: float


@dataclass(frozen=True)
class NodeTime:
    """A node in its place: figures of one run; ``sources`` are the nodes that were fused into it."""

    node: str
    op: str
    sources: tuple[str, ...]
    scope: str
    calls: int
    ms: float
    bytes: int
    flops: int


class Profile(_Document):
    """Time by operator and node."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer)
        self.trace: str = answer["trace"]
        """The last run as Chrome's trace events (JSON)."""
        self._read: list[str] = answer["read"]

    @property
    def executor(self) -> str:
        """The executor's name."""
        return str(self._document["exec"])

    @property
    def total_ms(self) -> float:
        """A whole run, mean."""
        return float(self._document["total_ms"])

    @property
    def ops(self) -> list[OperatorTime]:
        """Operators, the most expensive first."""
        return [OperatorTime(**row) for row in self._document["ops"]]

    @property
    def nodes(self) -> list[NodeTime]:
        """Nodes, in the order of execution."""
        return [NodeTime(**{**row, "sources": tuple(row["sources"])}) for row in self._document["nodes"]]

    def to_pandas(self, what: str = "nodes") -> Any:
        """Returns a pandas.DataFrame, a row for each of the "nodes" or "ops"."""
        from parallax.comparison import _package
        from parallax.errors import UsageError

        if what not in ("nodes", "ops"):
            raise UsageError(f"what is {what!r}; it must be 'nodes' or 'ops'")
        return _package("pandas").DataFrame(self._document[what])

    def save_trace(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Writes the last run for chrome://tracing or Perfetto. Returns the path.

        Raises UsageError for a file that was read and, without ``force``, for one that Parallax did not write; IoError.
        """
        return _files.write_text(path, self.trace, force, self._read)

    def __repr__(self) -> str:
        top = ", ".join(f"{row.op} {row.share:.0%}" for row in self.ops[:3])
        return _core.printable(f"<parallax.Profile on {self.executor}: {self.total_ms:.3f} ms a run; {top}>")


class Part(_Document):
    """The folder that reduce() or extract() wrote: a path, with what is in it."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer)
        self.path = Path(answer["directory"])
        """The folder."""

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes, in the order of execution."""
        return list(self._document["names"])

    @property
    def inputs(self) -> list[str]:
        """Names of the part's inputs."""
        return list(self._document["inputs"])

    @property
    def outputs(self) -> list[str]:
        """Names of the part's outputs."""
        return list(self._document["outputs"])

    @property
    def written(self) -> list[Path]:
        """Files and folders."""
        return [Path(path) for path in self._document["written"]]

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __repr__(self) -> str:
        return f"<parallax.Part {str(self.path)!r}: {len(self.nodes)} nodes, {self.inputs} -> {self.outputs}>"


@dataclass(frozen=True)
class BackendCase:
    """A backend-test folder; ``status``: "passed", "failed", "unsupported" or "error"."""

    name: str
    status: str
    reason: str | None


class BackendTests(_Document):
    """Results of backend-test folders; true where no case failed or could not run."""

    @property
    def cases(self) -> list[BackendCase]:
        """Every case, by name."""
        return [BackendCase(**row) for row in self._document["cases"]]

    @property
    def passed(self) -> int:
        """How many passed."""
        return int(self._document["passed"])

    def __bool__(self) -> bool:
        return not self._document["failed"] and not self._document["errors"]

    def __repr__(self) -> str:
        counts = ", ".join(f"{self._document[name]} {name}" for name in ("passed", "failed", "unsupported", "errors"))
        return f"<parallax.BackendTests of {self._document['total']} cases: {counts}>"


@dataclass(frozen=True)
class LateLibrary:
    """A library that is loaded when it is first needed; ``path`` is absolute, None where it is not found."""

    name: str
    product: str
    loaded_by: str
    path: str | None


@dataclass(frozen=True)
class DoctorItem:
    """Something this machine offers or lacks; ``advice`` says how to get it."""

    topic: str
    available: bool
    detail: str
    advice: str | None


class Doctor(_Document):
    """The features of this machine and this Python; ``doctor()["executor cuda"]`` is an item by its topic."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer)
        self.python = _python_items()
        """What this Python adds: its version, the module's threads, optional packages. Not in the document."""

    @property
    def items(self) -> list[DoctorItem]:
        """Every item, this Python's last."""
        return [*(DoctorItem(**row) for row in self._document["items"]), *self.python]

    @property
    def libraries(self) -> list[LateLibrary]:
        """The libraries that are loaded when they are first needed, in this process with what it has loaded already."""
        return [LateLibrary(**row) for row in self._document["libraries"]]

    def __getitem__(self, topic: str) -> DoctorItem:
        for item in self.items:
            if item.topic == topic:
                return item
        raise KeyError(topic)

    def __iter__(self) -> Iterator[DoctorItem]:
        return iter(self.items)

    def __str__(self) -> str:
        lines = []
        for item in self.python:
            lines.append(f"{'ok' if item.available else 'missing':<7} {item.topic:<15} {item.detail}")
            lines += [f"{'-> ':>24}{item.advice}"] if item.advice else []
        items, title, libraries = self._text.partition("Libraries that are loaded")
        return items + "\n".join(lines) + f"\n{title}{libraries}".rstrip("\n")

    def __repr__(self) -> str:
        return str(self)


# Package -> the extra that installs it.
_OPTIONAL = {
    "onnx": "torch", "torch": "torch", "onnxruntime": "ort", "transformers": "hf", "matplotlib": "plot",
    "pandas": "tables",
}  # fmt: skip


def _python_items() -> list[DoctorItem]:
    version = f"Python {platform.python_version()}, numpy {metadata.version('numpy')}"
    items = [DoctorItem("python", True, version, None)]
    if _core.has_own_library_threads():
        items.append(DoctorItem("threads", True, "oneDNN runs on the threads of Parallax", None))
    else:
        items.append(DoctorItem(
            "threads", False,
            "oneDNN runs on threads of another OpenMP runtime: convolutions that may lose a NaN run twice",
            "import parallax before the package that brings that runtime"))  # fmt: skip
    for name, extra in _OPTIONAL.items():
        try:
            items.append(DoctorItem(name, True, metadata.version(name), None))
        except metadata.PackageNotFoundError:
            advice = f"pip install 'parallax-onnx[{extra}]'"
            items.append(DoctorItem(name, False, f"the package {name} is not installed", advice))
    return items
