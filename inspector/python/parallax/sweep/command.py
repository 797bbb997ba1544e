# SPDX-License-Identifier: Apache-2.0
"""``python -m parallax.sweep``: arguments, progress, exit code."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parallax.errors import Error, UsageError
from parallax.sweep.changes import Changes, failing, with_changes
from parallax.sweep.jobs import Progress, Sweep, save_baselines, sweep
from parallax.sweep.junit import write_junit
from parallax.sweep.overview import write_overview
from parallax.sweep.records import TABLE
from parallax.sweep.spec import Limits, Spec, bytes_of, checked_executors, read_spec
from parallax.sweep.table import VERDICTS

__all__ = ["main"]

# Options that writing baselines takes, too.
_OF_BASELINES = (
    "save_baselines", "baselines", "out", "executors", "pattern", "jobs", "threads", "store", "time", "memory", "json", "program",
)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="parallax sweep",
        description="Runs many models on many executors: a row in OUT/results.parquet for each cell of models x inputs x executors x options.",
        epilog="Exit codes: 0 pass; 1 a cell failed, with --against one got worse; 2 usage; 3 to 5 as parallax.",
        allow_abbrev=False,
    )
    parser.add_argument("spec", metavar="SPEC.toml|DIR", help="a specification, a folder of models, or the folder of a finished sweep")
    parser.add_argument("-o", "--out", type=Path, help="folder of results (the spec's; sweep-out)")
    parser.add_argument("--with", action="append", dest="executors", metavar="EXEC[,EXEC]", help="executors instead of the spec's; may be repeated")
    parser.add_argument("-k", dest="pattern", default="", metavar="GLOB", help="only the models whose name matches")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes at a time (default: all processors)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of each process (1)")
    parser.add_argument("--scheduler", metavar="HOST:PORT", help="run on the workers of this Dask scheduler")
    parser.add_argument("--store", type=Path, metavar="DIR", help="folder of models under their hashes that the workers read, too")
    parser.add_argument("--time", type=float, metavar="SECONDS", help="limit of a cell (600)")
    parser.add_argument("--memory", metavar="BYTES", help="limit of a cell: resident memory (none)")
    parser.add_argument("--reports", choices=("none", "failing", "all"), help="cells with a report in OUT/reports (failing)")
    parser.add_argument("--retry", default="", metavar="VERDICT[,..]|all", help="do cells with these verdicts again")
    parser.add_argument("--against", type=Path, metavar="LAST", help="folder or table of a sweep: what got worse since; exit code 1 where something did")
    parser.add_argument("--baselines", type=Path, metavar="DIR", help="compare single executors with the baselines in this folder")
    parser.add_argument("--save-baselines", action="store_true", help="write the baselines instead")
    parser.add_argument("--junit", type=Path, metavar="F", help="write a test case for each cell")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--program", default="", metavar="PARALLAX", help="the program (PARALLAX_PROGRAM, next to this Python, PATH)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(options)
    except Error as error:
        if options.json:
            print(json.dumps({"error": {"code": error.code, "message": str(error), "node": None, "op": None}}))
        print(f"sweep: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("sweep: interrupted; the same command goes on where it ended", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _refuse_others(options: argparse.Namespace, taken: Sequence[str], reason: str) -> None:
    """Raises UsageError for an option that is given and not among those that are taken."""
    parser = _parser()
    for name, value in vars(options).items():
        if name not in ("spec", *taken) and value != parser.get_default(name):
            option = {"executors": "--with", "pattern": "-k"}.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{option} is given, and {reason}; leave it out")


def _run(options: argparse.Namespace) -> int:
    if (Path(options.spec) / TABLE).exists():
        folder = Path(options.spec)
        _refuse_others(options, ("against", "junit", "json"), f"nothing is run of '{folder}', which is a finished sweep")
        done = Sweep.read(folder)
    else:
        spec = _spec(options)
        retry = frozenset(filter(None, options.retry.split(",")))
        unknown = sorted(retry - {*VERDICTS, "all"})
        if unknown:
            raise UsageError(f"--retry has '{unknown[0]}'; a verdict is one of {', '.join(VERDICTS)}")
        progress = Progress(sys.stderr)
        if options.save_baselines:
            _refuse_others(options, _OF_BASELINES, "--save-baselines runs cells on this machine and compares nothing")
            count = save_baselines(spec, program=options.program, pattern=options.pattern, progress=progress)
            written = {"baselines": count, "folder": str(spec.baselines)}
            print(json.dumps(written, indent=2) if options.json else f"wrote {count} baselines into {spec.baselines}")
            return 0
        folder = spec.out
        done = sweep(spec, program=options.program, pattern=options.pattern, scheduler=options.scheduler, retry=retry, progress=progress)
    changed = with_changes(options.against, folder) if options.against is not None else None
    overview = write_overview(folder, changed)
    if options.junit is not None:
        write_junit(folder, options.junit, changed)
    _report(done, changed, overview, options.json)
    return int(bool(changed.counts["worse"]) or not changed.has_common if changed is not None else not done.passed)


def _spec(options: argparse.Namespace) -> Spec:
    spec = read_spec(options.spec)
    time_limit = spec.limits.time if options.time is None else options.time
    memory = spec.limits.memory if options.memory is None else bytes_of(options.memory, "--memory")
    if time_limit is not None and time_limit <= 0:
        raise UsageError(f"--time is {time_limit:g}; it must be seconds above 0")
    for name in ("jobs", "threads"):
        if (getattr(options, name) or 1) < 1:
            raise UsageError(f"--{name} is {getattr(options, name)}; it must be at least 1")
    changes: dict[str, Any] = {name: getattr(options, name) for name in ("out", "jobs", "threads", "store", "reports", "baselines")}
    changes["executors"] = checked_executors(options.executors, "--with") if options.executors else None
    return spec.with_changes(limits=Limits(time_limit, memory), **changes)


def _report(done: Sweep, changed: Changes | None, overview: Path, as_json: bool) -> None:
    if as_json:
        document: dict[str, Any] = {
            "cells": done.cells, "computed": done.computed, "verdicts": done.verdicts, "table": str(done.folder / TABLE), "overview": str(overview),
        }  # fmt: skip
        if changed is not None:
            document["against"] = {"last": changed.last, **changed.counts}
        print(json.dumps(document, indent=2))
        return
    counts = ", ".join(f"{done.verdicts[verdict]} {verdict}" for verdict in VERDICTS if done.verdicts.get(verdict))
    print(f"{done.cells} cells, {done.computed} computed now: {counts}")
    for line in failing(done.folder) if changed is None else [changed.text]:
        print(line)
    print(f"wrote {done.folder / TABLE} and {overview}")

