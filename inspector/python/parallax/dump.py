# SPDX-License-Identifier: Apache-2.0
"""Dumps: the captured values of a run as a mapping from value path to tensor, and dumps written from Python."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from parallax import _core
from parallax._core import DumpEntry
from parallax._sentences import ArgumentNames
from parallax.errors import UsageError
from parallax.model import Model

if TYPE_CHECKING:
    import pandas

__all__ = ["Dump", "DumpEntry", "DumpWriter", "NoSuchValue", "open"]


class NoSuchValue(UsageError, KeyError):
    """A dump has no value of this path."""


class Dump(Mapping[str, Any]):
    """A dump file: value path -> Tensor (list, dict or None where the value is a sequence, a map or absent).

    Tensors are read-only views of the mapped file and keep it open; ``load`` gives copies. The values are those of one
    execution, the first unless ``execution`` says another. Opening reads no payloads. Raises IoError, CorruptFile, and
    UsageError for an execution that the dump does not have.

    >>> import os, tempfile, numpy as np, parallax
    >>> path = os.path.join(tempfile.mkdtemp(), "a.plx")
    >>> with parallax.Dump.create(path) as writer:
    ...     _ = writer.write("x", np.arange(3, dtype=np.float32))
    >>> with parallax.open(path) as dump:
    ...     dump["x"].numpy().tolist(), len(dump), "y" in dump
    ([0.0, 1.0, 2.0], 1, False)
    """

    def __init__(self, source: str | os.PathLike[str] | _core.Dump, execution: int = 0) -> None:
        self._handle: _core.Dump | None = (
            source if isinstance(source, _core.Dump) else _core.Dump.open(os.fspath(source))
        )
        self._execution = execution
        count = len(self._handle.executions)
        if execution != 0 and not 0 <= execution < count:
            raise UsageError(f"execution is {execution}; {self._handle.path!r} has {count}, counted from 0")
        self._last: dict[str, int] | None = None

    @staticmethod
    def create(path: str | os.PathLike[str], **options: Any) -> DumpWriter:
        """Begins a dump file and its run; takes the options of DumpWriter."""
        return DumpWriter(path, **options)

    @property
    def _file(self) -> _core.Dump:
        if self._handle is None:
            raise UsageError("the dump is closed; values that were taken from it before stay valid")
        return self._handle

    @property
    def path(self) -> str:
        """The file."""
        return self._file.path

    @property
    def is_complete(self) -> bool:
        """True where the file was finished; one that was cut off holds everything until then."""
        return self._file.is_complete

    @property
    def execution(self) -> int:
        """The execution whose values these are: an index into ``executions``."""
        return self._execution

    @property
    def executions(self) -> list[dict[str, Any]]:
        """Executor, device, settings, model_path, model_sha256, wall_ms and completed of each execution."""
        return self._file.executions

    @property
    def graphs(self) -> list[dict[str, Any]]:
        """Name of each graph, whether it is the executed (fused) one, and its nodes' provenance then."""
        return self._file.graphs

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Execution, graph (index), name and step of each call."""
        return self._file.calls

    @property
    def events(self) -> list[dict[str, Any]]:
        """Events between the values: bodies and modules entered and left, failures, ends."""
        return self._file.events

    @property
    def structures(self) -> list[dict[str, Any]]:
        """Containers of captured objects, as JSON text; ``parallax.torch.restore`` builds them."""
        return self._file.structures

    @property
    def entries(self) -> list[DumpEntry]:
        """All values of all executions in the order of observation: type, node, level, statistics."""
        return self._file.entries

    def of_execution(self, execution: int) -> Dump:
        """Returns the values of another execution of the same file."""
        return Dump(self._file, execution)

    def model(self, graph: int = 0) -> Model:
        """Returns a graph of the dump as a model; weights above 1 KiB read as zeros. Raises UsageError without one."""
        return Model(self._file.model(graph))

    def entry(self, path: str) -> DumpEntry:
        """Returns what the dump says of a value without reading it. Raises NoSuchValue."""
        return self._file.entries[self._index(path)]

    def select(self, glob: str) -> list[str]:
        """Returns the paths that a glob matches: ``?``, ``*`` within a frame, ``**`` across frames."""
        entries = self._file.entries
        matching = {entries[index].path: None for index in self._file.select(glob)}
        return [path for path in matching if path in self._paths()]

    def load(self, path: str) -> Any:
        """Returns a copy of a value, which stays as it is whatever becomes of the file."""
        return self._file.load(self._index(path), copy=True)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a table with a row for each entry: path, node, op, role, level, type and statistics. Needs pandas."""
        import pandas

        columns = ("path", "name", "node", "op", "role", "level", "type", "execution", "call")
        rows = [
            {**{column: getattr(entry, column) for column in columns}, **(entry.statistics or {})}
            for entry in self.entries
        ]
        return pandas.DataFrame(rows)

    def close(self) -> None:
        """Lets go of the file; values that were taken before stay valid."""
        self._handle = None

    def __getitem__(self, path: str) -> Any:
        return self._file.load(self._index(path))

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths())

    def __len__(self) -> int:
        return len(self._paths())

    def __contains__(self, path: object) -> bool:
        return path in self._paths()

    def __enter__(self) -> Dump:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle is None:
            return "Dump(closed)"
        executors = ", ".join(row["executor"] for row in self.executions) or "no execution"
        return f"Dump({self.path!r}, {len(self)} values, {executors})"

    def _paths(self) -> dict[str, int]:
        """Path -> index of its last entry in this execution; values that did not exist are left out."""
        if self._last is None:
            self._last = {
                entry.path: entry.index
                for entry in self._file.entries
                if entry.execution == self._execution and entry.absence is None
            }
        return self._last

    def _index(self, path: str) -> int:
        index = self._paths().get(path)
        if index is None:
            near = difflib.get_close_matches(str(path), self._paths(), n=3)
            hint = f"; near it: {', '.join(near)}" if near else ""
            raise NoSuchValue(f"{self.path!r} has no value {path!r} in execution {self._execution}{hint}")
        return index


class DumpWriter:
    """Writes a dump from Python: each value is in the file when ``write`` returns, so a crash keeps what was written.

    ``executor``, ``device`` and ``settings`` describe the run; ``model`` (whatever load() takes) gives the dump its
    graph and the values their nodes. ``level`` is what is kept of every value: "all", "sample", "stats" or "shape"; of
    one above ``limit`` bytes (0: no limit) only a sample. ``only``: globs of the paths to keep. A context manager:
    leaving it ends the run and finishes the file. ``force``: the file may be one that Parallax did not write; the
    model's file never. Raises UsageError, IoError.

    >>> import os, tempfile, numpy as np, parallax
    >>> path = os.path.join(tempfile.mkdtemp(), "steps.plx")
    >>> with parallax.Dump.create(path, executor="mine") as writer:
    ...     for step in range(2):
    ...         _ = writer.write(f"step[{step}]//logits", np.full(4, step, np.float32))
    >>> parallax.open(path)["step[1]//logits"].shape
    (4,)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        executor: str = "python",
        device: str = "",
        settings: Mapping[str, Any] | None = None,
        model: Any = None,
        level: str = "all",
        only: Sequence[str] = (),
        limit: int = 0,
        sample_elements: int = 1024,
        force: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        model = None if model is None else Model(model)
        with ArgumentNames("DumpWriter"):
            self._core = _core.DumpWriter(
                self.path, level=level, only=list(only), limit=limit, sample_elements=sample_elements, force=force,
                inputs=[] if model is None else [model.path],
            )  # fmt: skip
        self.begin_run(executor, device=device, settings=settings, model=model)

    def begin_run(
        self, executor: str, *, device: str = "", settings: Mapping[str, Any] | None = None, model: Any = None
    ) -> None:
        """Begins a further execution in the same file; the first one has begun with the file."""
        texts = {str(name): str(value) for name, value in (settings or {}).items()}
        self._core.begin_run(executor, device, texts, None if model is None else Model(model).core)

    def add_executed_graph(self, model: Any, provenance: Sequence[tuple[str, str]] = ()) -> None:
        """Adds the graph that a runtime made of the run's model and executed.

        ``provenance``: pairs of its nodes and the nodes of the run's model that they stand for.
        """
        self._core.add_executed_graph(Model(model).core, list(provenance))

    def write(
        self, path: str, value: Any, *, level: str | None = None, role: str = "output", is_graph_output: bool = False
    ) -> bool:
        """Writes a value (an array, a list or a dict of arrays) under its value path.

        ``role`` is "input", "initializer" or "output"; a model of the run decides for values of its own. Returns
        whether that model has a value of this name (True without a model). Raises UsageError for what is no value path.
        """
        return self._core.write(path, value, level, role, is_graph_output)

    @contextlib.contextmanager
    def call(self, graph: str = "", step: int = -1) -> Iterator[None]:
        """The values written inside belong to one call of a graph, or to one step (paths are not changed by it)."""
        self._core.begin_call(graph, step)
        yield
        self._core.end_call()

    @contextlib.contextmanager
    def module(self, name: str, call: int, class_name: str = "") -> Iterator[str]:
        """One call of a module, entered and left; gives the frames of its values, ``module(NAME).call[N]//``."""
        self._core.enter_module(name, call, class_name)
        try:
            yield _core.module_frames(name, call)
        finally:
            self._core.leave_module(name, call, class_name)

    def structure(self, path: str, tree: str) -> None:
        """Says in which containers the values of one object stand (FORMAT.md, "Structure"); JSON text."""
        self._core.structure(path, tree)

    def end_run(self, completed: bool = True) -> None:
        """Ends an execution before another one begins; leaving the context ends the last one."""
        self._core.end_run(completed)

    def finish(self) -> None:
        """Adds the index and closes the file. Without it the file stays readable."""
        self._core.finish()

    def __enter__(self) -> DumpWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._core.end_run(kind is None)
        self._core.finish()


def open(path: str | os.PathLike[str], execution: int = 0) -> Dump:
    """Opens a dump file. See Dump.

    >>> import parallax
    >>> with parallax.open("out/B-cpu.plx") as dump:                      # doctest: +SKIP
    ...     dump["linear"].numpy().max(), dump["step[3]//logits"].shape
    """
    return Dump(path, execution)
