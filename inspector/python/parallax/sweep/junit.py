# SPDX-License-Identifier: Apache-2.0
"""The table of a sweep as JUnit XML for a CI server: a test case for each cell."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from parallax.sweep.changes import Changes, label
from parallax.sweep.records import write_whole
from parallax.sweep.table import KEYS, read_columns

__all__ = ["write_junit"]

_SKIPPED = ("unsupported",)
_FAILED = ("diverged", "inconclusive")


def write_junit(folder: Path, path: Path, changed: Changes | None = None) -> None:
    """Writes the file; with ``changed`` only what got worse fails. Raises IoError."""
    columns = (*KEYS, "verdict", "seconds", "worst_severity", "first_node", "first_op", "error", "reason")
    worse = None if changed is None else set(changed.worse["at"].to_pylist())
    suite = ET.Element("testsuite", name="parallax sweep")
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for at, row in enumerate(read_columns(folder, columns).to_pylist()):
        counts["tests"] += 1
        case = ET.SubElement(suite, "testcase", classname=_clean(row["model"]), name=_clean(label(row)), time=f"{row['seconds'] or 0:.3f}")
        verdict = row["verdict"]
        kind = "skipped" if verdict in _SKIPPED else "failure" if verdict in _FAILED else "error" if verdict != "pass" else ""
        if worse is not None and kind in ("failure", "error") and at not in worse:
            kind = "skipped"
        if kind:
            counts["skipped" if kind == "skipped" else f"{kind}s"] += 1
            ET.SubElement(case, kind, message=_clean(_message(row)))
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    write_whole(path, ET.tostring(suite, encoding="utf-8", xml_declaration=True))


def _message(row: dict[str, object]) -> str:
    first = f"first at {row['first_node']} ({row['first_op']})" if row["first_node"] else ""
    severity = f"severity {row['worst_severity']:.3g}" if row["worst_severity"] is not None else ""
    return ": ".join(str(part) for part in (row["verdict"], row["error"] or row["reason"] or severity, first) if part)


def _clean(text: object) -> str:
    """Without characters that XML does not have."""
    return "".join(char if char in "\t\n" or " " <= char <= "\ud7ff" or char > "\ue000" else "?" for char in str(text))
