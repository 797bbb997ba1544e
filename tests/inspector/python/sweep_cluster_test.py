# SPDX-License-Identifier: Apache-2.0
"""Cells by two local processes and by a Dask cluster of two workers, one of which is killed: one table.

66 cells; with PARALLAX_SWEEP=whole, 300 cells of all models that the package onnx has.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
import sweeps

pytest.importorskip("pyarrow", reason="a sweep writes its table with pyarrow")
pytest.importorskip("distributed", reason="Dask runs the cells of a cluster")
onnx = pytest.importorskip("onnx", reason="its package has the backend tests that are swept")

from parallax.errors import IoError  # noqa: E402
from parallax.sweep import Progress, Spec, read_spec, sweep, with_changes  # noqa: E402

IS_WHOLE = os.environ.get("PARALLAX_SWEEP") == "whole"
SUITE = Path(onnx.__file__).parent / "backend" / "test" / "data" / ("" if IS_WHOLE else "simple")
SPEC = f"""
[limits]
time = 300
memory = "4GiB"

[[models]]
path = "{SUITE}"

[[models]]
path = "{sweeps.SAMPLES}"

[[models]]
path = "{sweeps.SAMPLES}/fault_pair/A.onnx"
name = "pair"
against = "{sweeps.SAMPLES}/fault_pair/B.onnx"

[[options]]
name = "default"

[[options]]
name = "unfused"
rewrite = "none"
"""


class AtCell(Progress):
    """Does something when so many cells are finished."""

    def __init__(self, count: int, action: object) -> None:
        super().__init__(io.StringIO())
        self._left, self._action = count, action

    def add(self, verdict: str) -> None:
        """Counts a cell."""
        super().add(verdict)
        self._left -= 1
        if self._left == 0:
            self._action()  # type: ignore[operator]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "sweep.toml").write_text(SPEC)
    return read_spec(folder / "sweep.toml").with_changes(jobs=2)


def test_a_cluster_that_loses_a_worker_gives_the_table_of_local_processes(spec: Spec, tmp_path: Path) -> None:
    local = sweep(spec)
    assert local.cells >= (300 if IS_WHOLE else 66) and local.verdicts["pass"] > 0.6 * local.cells and local.verdicts["diverged"] >= 4
    assert set(local.verdicts) <= {"pass", "diverged", "refused"}  # StringNormalizer has no kernel in cpu
    remote = spec.with_changes(out=tmp_path / "remote", store=tmp_path / "store")
    with sweeps.cluster(tmp_path) as cluster:

        def lose_one() -> None:
            cluster.workers[0].kill()
            cluster.start_worker()

        done = sweep(remote, scheduler=cluster.address, progress=AtCell(local.cells // 3, lose_one))
        assert (done.cells, done.verdicts) == (local.cells, local.verdicts)
        assert sweeps.table(remote.out) == sweeps.table(spec.out)
        assert sweep(remote, scheduler=cluster.address).computed == 0
    changed = with_changes(spec.out, remote.out)
    assert changed.counts == {"worse": 0, "better": 0, "same": local.cells, "new": 0, "gone": 0}
    reports = sorted(path.name for path in (spec.out / "reports").rglob("*.html"))
    assert reports and reports == sorted(path.name for path in (remote.out / "reports").rglob("*.html"))


def test_a_hung_cell_ends_at_its_limit_on_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps.small_models(tmp_path / "models", "hang", "good")
    (tmp_path / "sweep.toml").write_text('[[models]]\npath = "models"\n[limits]\ntime = 15\n')
    monkeypatch.setenv("PARALLAX_PROGRAM", str(sweeps.faulty_program(tmp_path)))
    with sweeps.cluster(tmp_path, 1) as cluster:
        assert sweep(read_spec(tmp_path / "sweep.toml"), scheduler=cluster.address).verdicts == {"pass": 1, "timeout": 1}
    assert not sweeps.is_alive(int((tmp_path / "hung.pid").read_text()))


def test_a_scheduler_that_is_not_there_is_a_sentence(spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parallax.sweep.runners.CONNECT_SECONDS", 1)
    with pytest.raises(IoError, match="there is no Dask scheduler at '127.0.0.1:9'"):
        sweep(spec.with_changes(out=tmp_path / "out"), pattern="recurrent", scheduler="127.0.0.1:9")
