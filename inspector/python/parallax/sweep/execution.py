# SPDX-License-Identifier: Apache-2.0
"""One cell: a process of the program with limits of time and memory, and the record of what it gave.

The process leads a session of its own. At a limit its whole group is killed, and the kernel kills it where the thread that
waits for it dies (setpriv, of util-linux). Peak memory is the kernel's figure for the process where it exceeds that of this
interpreter, from which the process inherits one; else the largest of the figures that are read every 5 to 50 ms.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from parallax._loading import child_environment
from parallax.errors import IoError, UsageError
from parallax.sweep.content import Source, resolved
from parallax.sweep.plan import Cell, line_of
from parallax.sweep.spec import Limits

__all__ = ["Outcome", "Stopped", "find_program", "program_version", "run_cell"]

FORMAT = 1
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.05
_MOST_CAUSES = 5
_LONGEST_TEXT = 2000
_PAGE = os.sysconf("SC_PAGE_SIZE")
_VERDICT_OF_TEST = {"passed": "pass", "failed": "diverged", "unsupported": "unsupported", "error": "error"}


class Outcome(NamedTuple):
    """A cell's record as JSON, the files that it made by kind, and whether the record holds for every later sweep."""

    record: dict[str, Any]
    files: dict[str, bytes]
    is_final: bool = True


class Stopped(Exception):
    """The sweep is to end: the process of a cell was killed."""


def find_program(given: str = "") -> str:
    """The program: the given one, PARALLAX_PROGRAM's, the one next to this Python, or PATH's. Raises UsageError."""
    for path in (given, os.environ.get("PARALLAX_PROGRAM", "")):
        if path:
            if not os.access(path, os.X_OK) or os.path.isdir(path):
                raise UsageError(f"'{path}' is not a program; --program and PARALLAX_PROGRAM name parallax")
            return os.path.abspath(path)
    found = shutil.which("parallax", path=os.path.dirname(sys.executable)) or shutil.which("parallax")
    if found is None:
        raise UsageError("parallax is not on the PATH; --program or the variable PARALLAX_PROGRAM names it")
    return found


@functools.lru_cache(maxsize=8)
def program_version(program: str) -> str:
    """The text that ``parallax --version`` prints. Raises UsageError."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"'{program} --version' failed: {error}") from None
    return " ".join(done.stdout.split())


def run_cell(
    cell: Cell, limits: Limits, *, program: str = "", version: str = "", store: str = "", reports: str = "failing",
    stop: threading.Event | None = None,
) -> Outcome:  # fmt: skip
    """Runs a cell here and returns what it gave; failures of the cell are records. Raises UsageError and Stopped.

    ``version``: of the program that the cell's id holds for; another one here is a UsageError.
    """
    program = find_program(program)
    here = program_version(program)
    if version and here != version:
        raise UsageError(f"{socket.gethostname()} has {here} ({program}); the sweep was planned for {version}")
    # A runner outlives the program that started it by a moment, in which it may write yet.
    with tempfile.TemporaryDirectory(prefix="parallax-sweep-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        try:
            paths = {word: resolved(word, store) for word in cell.line if isinstance(word, Source)}
        except IoError as error:
            record = {"verdict": "error", "error": str(error), "exit_code": error.code}
            return Outcome(_completed(record, cell, here, limits), {}, False)
        line = line_of(cell, paths)
        kept = _redirected(line, folder / "baseline.plx")
        line += ["--json"]
        if cell.line[0] == "run":
            line += ["--html", str(folder / "report.html")] if reports != "none" and cell.executor_b and not kept else []
            line += ["--memory-limit", str(limits.memory)] if limits.memory is not None else []
        record = _process([program, *line], folder, limits, stop)
        _leave_out_paths(record, {**{path: word.name or os.path.basename(path) for word, path in paths.items()}, f"{folder}/": ""})
        files = {"baseline": (folder / "baseline.plx").read_bytes()} if kept and (folder / "baseline.plx").exists() else {}
        if reports == "all" or (reports == "failing" and record["verdict"] != "pass"):
            with contextlib.suppress(OSError):
                files["report"] = (folder / "report.html").read_bytes()
        record["has_report"] = "report" in files
    return Outcome(_completed(record, cell, here, limits), files, all(identity for _, identity in cell.foreign))


def _leave_out_paths(record: dict[str, Any], names: dict[str, str]) -> None:
    """Names files in the record's sentences without their folders: a cell gives the same record wherever it runs."""
    for key in ("error", "reason"):
        for path, name in names.items():
            if isinstance(record.get(key), str):
                record[key] = record[key].replace(path, name)


def _redirected(line: list[str], path: Path) -> bool:
    """Lets a baseline be written to ``path``; returns whether the line writes one."""
    if "--save-baseline" not in line:
        return False
    line[line.index("--save-baseline") + 1] = str(path)
    return True


def _completed(record: dict[str, Any], cell: Cell, version: str, limits: Limits) -> dict[str, Any]:
    limited = {"time": limits.time, "memory": limits.memory}
    return {"format": FORMAT, "cell": cell.id, "version": version, "host": socket.gethostname(), "limits": limited, **record}


def _process(command: list[str], folder: Path, limits: Limits, stop: threading.Event | None) -> dict[str, Any]:
    """Runs the command within its limits; returns the record of its end."""
    guard = shutil.which("setpriv")
    guarded = [guard, "--pdeathsig", "KILL", *command] if guard else command
    began, started = time.time(), time.monotonic()
    with open(folder / "stdout", "wb") as stdout, open(folder / "stderr", "wb") as stderr:
        process = subprocess.Popen(
            guarded, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
            env={**child_environment(), "TMPDIR": str(folder)},
        )  # fmt: skip
        status, usage, cause, peak = _watch(process, started, limits, stop)
    seconds = time.monotonic() - started
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if usage.ru_maxrss * 1024 > own_peak:
        peak = max(peak, usage.ru_maxrss * 1024)
    code = os.waitstatus_to_exitcode(status)
    record: dict[str, Any] = {
        "started": began, "seconds": round(seconds, 4), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 4),
        "peak_bytes": peak, "exit_code": code if code >= 0 else None, "signal": _signal_name(-code) if code < 0 else None,
    }  # fmt: skip
    with open(folder / "stderr", "rb") as file:
        file.seek(max(0, os.path.getsize(folder / "stderr") - _LONGEST_TEXT))
        messages = file.read().decode(errors="replace").strip()
    if cause:
        return {**record, "verdict": cause, "error": _limit_sentence(cause, limits)}
    if code < 0:
        return {**record, "verdict": "crash", "error": _short(f"ended by {record['signal']}. {messages}".strip())}
    return {**record, **_result(folder / "stdout", code, messages)}


def _watch(process: subprocess.Popen[bytes], started: float, limits: Limits, stop: threading.Event | None) -> tuple[int, Any, str, int]:
    """Waits for the end: (wait status, resource usage, the limit that ended it, the largest memory seen)."""
    pause, peak, cause = _SHORTEST_PAUSE, 0, ""
    try:
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return status, usage, cause, peak
            resident = _resident_bytes(process.pid)
            peak = max(peak, resident, _high_water(process.pid))
            if stop is not None and stop.is_set():
                raise Stopped
            if not cause and limits.time is not None and time.monotonic() - started > limits.time:
                cause = "timeout"
            if not cause and limits.memory is not None and resident > limits.memory:
                cause = "memory"
            if cause:
                _kill_group(process.pid)
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)
    finally:
        _kill_group(process.pid)  # what it started and left
        if process.returncode is None:
            process.wait()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _resident_bytes(pid: int) -> int:
    """Resident memory of a process and of those that it started."""
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError, IndexError, ValueError):
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * _PAGE
            for task in os.listdir(f"/proc/{one}/task"):
                waiting += map(int, Path(f"/proc/{one}/task/{task}/children").read_text().split())
    return total


def _high_water(pid: int) -> int:
    """The largest resident memory that a process has had."""
    with contextlib.suppress(OSError, ValueError):
        for text in Path(f"/proc/{pid}/status").read_text().splitlines():
            if text.startswith("VmHWM:"):
                return int(text.split()[1]) * 1024
    return 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _limit_sentence(cause: str, limits: Limits) -> str:
    if cause == "timeout":
        return f"not finished after {limits.time:g} s, its limit of time"
    return f"resident memory is beyond {limits.memory} bytes, its limit"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _result(stdout: Path, code: int, messages: str) -> dict[str, Any]:
    """Verdict, first divergence, causes and worst value of the document that the program printed."""
    try:
        document = json.loads(stdout.read_bytes())
    except ValueError:
        return {"verdict": "error", "error": _short(f"exit code {code} without a document. {messages}".strip())}
    error = document.get("error")
    if error is not None or code not in (0, 1):
        message = str((error or {}).get("message") or messages)
        verdict = "refused" if code == 3 else "memory" if code == 4 and "--memory-limit" in message else "error"
        return {"verdict": verdict, "error": _short(message), "node": (error or {}).get("node"), "op": (error or {}).get("op")}
    if "cases" in document:
        return _result_of_test(document)
    verdict = document.get("verdict") or ("pass" if code == 0 else "diverged")
    values = [*document.get("values", []), *document.get("expected", [])]
    nothing: tuple[float | None, dict[str, Any]] = (None, {})
    judged = [(_severity(value), value) for value in values if value.get("severity") is not None and not value.get("accepted")]
    severity, worst = max(judged, key=lambda pair: pair[0], default=nothing)
    first: dict[str, Any] = document.get("first_divergence") or next((value for value in values if value["verdict"] == "diverged"), {})
    rows = document.get("executions") or [document.get("execution", {})]
    return {
        "verdict": verdict if code == 0 or verdict != "pass" else "diverged", "reason": document.get("reason"),
        "summary": document.get("summary"), "worst_severity": None if severity is None else _text_of(severity), "worst_path": worst.get("path"),
        "first": {key: first.get(key) for key in ("path", "node", "op")} if first else None,
        "causes": [
            {key: cause.get(key) for key in ("node", "op", "side", "introduced", "why")} for cause in document.get("causes", [])[:_MOST_CAUSES]
        ],
        "milliseconds": {str(row.get("side", "A")).lower(): row.get("wall_ms") for row in rows},
    }  # fmt: skip


def _result_of_test(document: dict[str, Any]) -> dict[str, Any]:
    statuses = {case["status"]: case.get("reason") for case in document["cases"]}
    worst = next((status for status in ("error", "failed", "unsupported", "passed") if status in statuses), "error")
    reason = statuses.get(worst) if statuses else "the folder has no case"
    return {"verdict": _VERDICT_OF_TEST[worst], "reason": None if worst == "passed" else _short(str(reason))}


def _severity(value: dict[str, Any]) -> float:
    severity = float(value["severity"])
    return severity if severity == severity else float("inf")


def _text_of(severity: float) -> float | str:
    return "inf" if severity == float("inf") else severity


def failure(cell: Cell, verdict: str, error: str, version: str, limits: Limits) -> dict[str, Any]:
    """The record of a cell that ended without a document of its own."""
    return _completed({"verdict": verdict, "error": _short(error)}, cell, version, limits)
