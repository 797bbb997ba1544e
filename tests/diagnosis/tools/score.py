# SPDX-License-Identifier: Apache-2.0
"""Runs Parallax on pairs and scores what it says: detection, the first cause, both roots of two, alarms, coverage, time."""
from __future__ import annotations

import collections
import json
import pathlib
import shutil
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from tools.forms import GROUPS
from tools.mistakes import MISTAKES
from tools.pairs import Maker, Pair, Root

Document = dict[str, Any]


@dataclass
class Result:
    """One judged pair. `ranks` holds for each root the rank of the first cause that names it, 0 where none does."""

    name: str
    architecture: str
    form: str
    group: str
    kinds: list[str]
    code: int
    seconds: float
    compared: int = 0
    values: int = 0
    seen: bool = False
    ranks: list[int] = field(default_factory=list)
    wrong: str = ""
    said: list[str] = field(default_factory=list)
    command: str = ""


def run(parallax: str, folder: pathlib.Path, timeout: float) -> tuple[int, Document, float, str]:
    """Exit code (124: out of time), document, seconds and the command of `run A --against B`."""
    command = [parallax, "run", str(folder / "A.onnx"), "--against", str(folder / "B.onnx"), "--inputs", str(folder / "inputs.npz"), "--json"]
    start = time.monotonic()
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
        code, text = answer.returncode, answer.stdout or json.dumps({"error": {"message": answer.stderr[-300:]}})
    except subprocess.TimeoutExpired:
        code, text = 124, json.dumps({"error": {"message": f"no answer within {timeout:.0f} s"}})
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        document = {"error": {"message": text[-300:]}}
    return code, document, time.monotonic() - start, " ".join(command)


def names_root(cause: Document, root: Root, nodes_a: set[str]) -> bool:
    """True where a cause names a node of A, of B by `node_b`, or a node of B that A has not."""
    node, other = cause["node"], cause.get("node_b")
    return node in root.a or other in root.b or (node in root.b and node not in nodes_a)


def judge(pair: Pair, code: int, document: Document, seconds: float, command: str) -> Result:
    causes = document.get("causes", [])
    summary = document.get("summary", {})
    result = Result(pair.name, pair.architecture, pair.form, GROUPS[pair.form], [root.kind for root in pair.roots], code, round(seconds, 2),
                    summary.get("compared", 0), summary.get("values", 0), command=command)
    nodes_a = {node.name for node in pair.a.graph.node}
    result.said = [f"{cause['node']} ({cause['op']}{', B ' + cause['node_b'] if cause.get('node_b') else ''}): {cause['why']}" for cause in causes[:3]]
    if code not in (0, 1):
        result.wrong = f"not run (exit code {code}): {document.get('error', {}).get('message', '')[:300]}"
    elif not pair.roots:
        first = document.get("first_divergence") or {}
        result.wrong = f"alarm: {document.get('verdict')}, first at {first.get('path')} ({first.get('op')})" if code else ""
    else:
        result.seen = code == 1 and document.get("verdict") == "diverged"
        result.ranks = [next((rank for rank, cause in enumerate(causes, 1) if names_root(cause, root, nodes_a)), 0) for root in pair.roots]
        if not result.seen:
            result.wrong = f"not seen: verdict {document.get('verdict')}"
        elif 1 not in result.ranks:
            result.wrong = f"cause 1 is another node, the right one has rank {min((rank for rank in result.ranks if rank), default=0) or 'none'}"
        elif not all(0 < rank <= 3 for rank in result.ranks):
            result.wrong = f"one of two roots is not among three: ranks {result.ranks}"
    return result


class Report:
    """All results of a seed, printed as tables and written as JSON."""

    def __init__(self, seed: int) -> None:
        self.seed, self.results = seed, list[Result]()
        self.dropped: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        self.start = time.monotonic()

    def add(self, result: Result, folder: pathlib.Path, keep: bool) -> None:
        """Enters a result and prints it where it is wrong; the pair's folder goes unless it is to be kept."""
        self.results.append(result)
        if len(self.results) % 20 == 0:
            print(f"{len(self.results)} pairs, {sum(bool(known.wrong) for known in self.results)} wrong, {self.minutes():.1f} minutes", flush=True)
        if result.wrong:
            print("\n    ".join([f"{result.name}: {result.wrong}", *(f"said {line[:300]}" for line in result.said), result.command]), flush=True)
        if not keep:
            shutil.rmtree(folder)

    def made(self, maker: Maker) -> None:
        self.dropped, self.reasons = dict(maker.dropped.most_common()), maker.reasons
        self.results.sort(key=lambda result: (bool(result.kinds), result.name))

    def minutes(self) -> float:
        return (time.monotonic() - self.start) / 60

    def is_wrong(self) -> bool:
        return any(result.wrong for result in self.results)

    def healthy(self) -> list[Result]:
        return [result for result in self.results if not result.kinds]

    def faulty(self) -> list[Result]:
        return [result for result in self.results if result.kinds]

    def totals(self) -> dict[str, Any]:
        """Shares in percent of all pairs and by group."""
        totals: dict[str, Any] = {"architectures": len({result.architecture for result in self.results}), "minutes": round(self.minutes(), 1)}
        for group in ("all", "float", "half", "quantized"):
            healthy, faulty = ([result for result in results if group in ("all", result.group)] for results in (self.healthy(), self.faulty()))
            one = [result for result in faulty if len(result.kinds) == 1]
            two = [result for result in faulty if len(result.kinds) == 2]
            totals[group] = {
                "healthy": len(healthy), "alarms": sum(result.code == 1 for result in healthy), "not run": sum(result.code not in (0, 1) for result in healthy + faulty),
                "faulty": len(faulty), "seen": percent(result.seen for result in faulty), "rank 1": percent(1 in result.ranks for result in faulty),
                "rank 1 of one root": percent(1 in result.ranks for result in one), "two roots": len(two), "both among three": percent(all(0 < rank <= 3 for rank in result.ranks) for result in two),
                "coverage healthy": percent_of(sum(result.compared for result in healthy), sum(result.values for result in healthy)),
                "coverage faulty": percent_of(sum(result.compared for result in faulty), sum(result.values for result in faulty)),
                "seconds median": round(statistics.median([result.seconds for result in healthy + faulty] or [0]), 2), "seconds most": max([result.seconds for result in healthy + faulty], default=0)}
        return totals

    def table(self, title: str, key: str) -> None:
        rows: dict[str, list[Result]] = collections.defaultdict(list)
        for result in self.results:
            for name in (result.kinds[:1] if key == "kinds" else [getattr(result, key)]):
                rows[name].append(result)
        print(f"\n{title:28} healthy  alarms  faulty  seen  rank 1  not run")
        for name, results in sorted(rows.items()):
            faulty = [result for result in results if result.kinds]
            print(f"{name:28} {len(results) - len(faulty):7d} {sum(result.code == 1 for result in results if not result.kinds):7d} {len(faulty):7d} {sum(result.seen for result in faulty):5d}"
                  f" {sum(1 in result.ranks for result in faulty):7d} {sum(result.code not in (0, 1) for result in results):8d}")

    def print(self) -> None:
        for title, key in (("form", "form"), ("architecture", "architecture"), ("kind", "kinds")):
            self.table(title, key)
        print("\nleft out while making:", ", ".join(f"{reason} {count}" for reason, count in self.dropped.items()) or "nothing")
        for group, totals in self.totals().items():
            print(f"{group}: " + (", ".join(f"{name} {value}" for name, value in totals.items()) if isinstance(totals, dict) else str(totals)))

    def write(self, path: str) -> None:
        document = {"seed": self.seed, "totals": self.totals(), "dropped": self.dropped, "reasons": self.reasons, "kinds": sorted(MISTAKES), "pairs": [asdict(result) for result in self.results]}
        pathlib.Path(path).write_text(json.dumps(document, indent=1) + "\n")


def percent_of(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 100.0


def percent(facts: Any) -> float:
    given = [bool(fact) for fact in facts]
    return percent_of(sum(given), len(given))
