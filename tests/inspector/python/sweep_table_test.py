# SPDX-License-Identifier: Apache-2.0
"""The table of a sweep in other readers, two tables compared, and the overview."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import sweeps

pytest.importorskip("pyarrow", reason="a sweep writes its table with pyarrow")

sys.path.insert(0, str(sweeps.ROOT / "tests" / "bench"))

import sweep_bench  # noqa: E402
from parallax.sweep import with_changes, write_overview  # noqa: E402
from parallax.sweep.table import VERDICTS, schema, write_rows  # noqa: E402

CELLS = 4000


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two synthetic sweeps."""
    made = tmp_path_factory.mktemp("sweeps")
    for seed, name in enumerate(("last", "now")):
        (made / name).mkdir()
        sweep_bench.make_table(made / name / "results.parquet", CELLS, seed)
    return made / "last", made / "now"


def counts_of(folder: Path) -> dict[str, int]:
    import pyarrow.parquet as pq

    verdicts = pq.read_table(folder / "results.parquet")["verdict"].to_pylist()
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def test_pandas_polars_and_duckdb_read_the_table(folders: tuple[Path, Path]) -> None:
    pandas, polars, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    path, wanted = folders[1] / "results.parquet", counts_of(folders[1])
    assert pandas.read_parquet(path)["verdict"].value_counts().to_dict() == {name: count for name, count in wanted.items() if count}
    frame = polars.read_parquet(path)
    assert frame.columns == schema().names and len(frame) == CELLS
    assert frame.filter(polars.col("verdict") == "diverged")["worst_severity"].min() > 1 and frame["causes"].dtype == polars.List
    rows = duckdb.sql(f"select verdict, count(*) from '{path}' group by verdict").fetchall()
    assert dict(rows) == {name: count for name, count in wanted.items() if count}
    assert duckdb.sql(f"select count(distinct model) from '{path}'").fetchall() == [(CELLS // 10,)]


def test_causes_and_times_survive_the_table(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    cause = {"node": "conv", "op": "Conv", "side": "B", "introduced": 3.5, "why": "attribute pads differs"}
    write_rows(({"model": f"m{at}", "verdict": "diverged", "causes": [cause] * at, "started": at} for at in range(3)), tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.schema.equals(schema()) and table["causes"].to_pylist() == [[], [cause], [cause] * 2]
    assert table.schema.metadata[b"parallax.sweep"] == b"1"


def test_changes_are_those_that_loops_find(folders: tuple[Path, Path]) -> None:
    import pyarrow.parquet as pq

    key = ("model", "executor_a", "executor_b", "inputs", "options")
    last, now = ({tuple(row[name] for name in key): row for row in pq.read_table(folder / "results.parquet").to_pylist()} for folder in folders)
    worse, better = set(), set()
    for name, row in now.items():
        rank, before = VERDICTS.index(row["verdict"]), VERDICTS.index(last[name]["verdict"])
        severities = row["worst_severity"], last[name]["worst_severity"]
        if rank > before or (rank == before == 3 and severities[0] > 2 * severities[1]):
            worse.add(name)
        elif rank < before or (rank == before == 3 and severities[1] > 2 * severities[0]):
            better.add(name)
    changed = with_changes(*folders)
    assert worse and {tuple(row[name] for name in key) for row in changed.worse.to_pylist()} == worse
    assert {tuple(row[name] for name in key) for row in changed.better.to_pylist()} == better
    assert changed.counts == {"worse": len(worse), "better": len(better), "same": CELLS - len(worse) - len(better), "new": 0, "gone": 0}
    ranks = [VERDICTS.index(row["verdict"]) for row in changed.worse.to_pylist()]
    assert ranks == sorted(ranks, reverse=True)


def test_cells_of_one_sweep_alone_are_new_or_gone(tmp_path: Path) -> None:
    row = {"against": "", "executor_a": "cpu", "executor_b": "", "inputs": "i", "options": "o", "verdict": "crash"}
    for name, models in (("a", ("one", "two")), ("b", ("two", "three", "four"))):
        write_rows(({**row, "model": model} for model in models), tmp_path / f"{name}.parquet")
    changed = with_changes(tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert changed.counts == {"worse": 0, "better": 0, "same": 1, "new": 2, "gone": 1}


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


def test_the_overview_has_each_model_and_links_no_other_host(folders: tuple[Path, Path]) -> None:
    changed = with_changes(*folders)
    page = write_overview(folders[1], changed).read_text()
    data = data_of(page)
    models = data["models"]
    assert isinstance(models, list) and isinstance(data["columns"], list)
    assert len(models) == CELLS // 10 and len(data["columns"]) == 10
    letters = "".join(model[1] for model in models)
    assert {verdict: letters.count(format(at, "x")) for at, verdict in enumerate(VERDICTS)} == counts_of(folders[1])
    worst = [max(int(letter, 16) for letter in model[1]) for model in models]
    assert worst == sorted(worst, reverse=True)
    marks = [detail[6] for model in models for detail in model[3].values()]
    assert (marks.count(1), marks.count(-1)) == (changed.counts["worse"], changed.counts["better"])
    assert not re.search(r'(src|href)="(https?:)?//', page) and "prefers-color-scheme:dark" in page
    for heading in ("Since", "Models", "Executors and options", "Folders of models", "Operators of first causes", "Errors", "Slowest cells"):
        assert f"<h2>{heading}" in page


def test_names_are_text_in_the_overview(tmp_path: Path) -> None:
    row = {"executor_a": "cpu", "executor_b": "", "inputs": "i", "options": "o", "verdict": "error", "error": "</script><script>alert(1)"}
    write_rows([{**row, "model": "<img src=x>", "against": "</script><b>"}], tmp_path / "results.parquet")
    page = write_overview(tmp_path).read_text()
    assert "<img" not in page.replace(json.dumps(data_of(page)["models"])[1:30], "") or "<img" not in page.partition('id="data"')[0]
    assert page.count("</script>") == 2 and "alert(1)" in json.dumps(data_of(page))


def test_an_empty_and_a_foreign_table_are_sentences(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from parallax.errors import IoError

    pq.write_table(pa.table({"x": [1]}), tmp_path / "results.parquet")
    with pytest.raises(IoError, match="must be the results.parquet of a sweep|cannot be read as the table of a sweep"):
        write_overview(tmp_path)
    write_rows([], tmp_path / "none.parquet")
    assert with_changes(tmp_path / "none.parquet", tmp_path / "none.parquet").counts["same"] == 0
