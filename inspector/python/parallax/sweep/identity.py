# SPDX-License-Identifier: Apache-2.0
"""Executors that are programs of their own: what can change their results, which is a part of a cell's id."""

from __future__ import annotations

import functools
import json
import socket
import subprocess
from pathlib import Path

from parallax._loading import child_environment
from parallax.errors import IoError, UsageError
from parallax.runners import PROTOCOL
from parallax.sweep.content import Hashes

__all__ = ["check_identity", "identity_of"]

_LONGEST_SECONDS = 120  # as long as the program waits for the answer to `describe`


def identity_of(executor: str, hashes: Hashes) -> str:
    """The answer of a foreign executor to ``describe``, with the hash of the .pt2 file that it runs.

    "" where equal identities do not mean equal results: it does not answer or states no version, or it runs what a Python
    function gives.
    """
    kind, _, argument = executor.partition(":")
    content = ""
    if kind == "torch":
        if not argument.endswith(".pt2"):
            return ""
        try:
            content = hashes.source(Path(argument)).sha
        except IoError:
            return ""  # the cell's error says so
    described = _described(kind, argument)
    return json.dumps([described, content], sort_keys=True) if described.get("version") else ""


def _described(kind: str, argument: str) -> dict[str, object]:
    environment = child_environment()
    runner = [environment["PARALLAX_PYTHON"], "-m", "parallax.runners", kind, *filter(None, [argument])]
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", argument] if kind == "cmd" else runner, env=environment, timeout=_LONGEST_SECONDS, check=False,
            input=json.dumps({"request": "describe", "protocol": PROTOCOL}).encode() + b"\n", capture_output=True,
        )  # fmt: skip
        answer = json.loads(done.stdout.partition(b"\n")[0])
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}  # as above
    return answer if isinstance(answer, dict) else {}


@functools.lru_cache(maxsize=64)
def check_identity(executor: str, identity: str) -> None:
    """Asks the executor of this machine. Raises UsageError where its identity is another one."""
    if identity_of(executor, Hashes()) != identity:
        raise UsageError(
            f"the executor '{executor}' of {socket.gethostname()} is another one than where the sweep was planned; it must have the "
            "same version and settings"
        )
