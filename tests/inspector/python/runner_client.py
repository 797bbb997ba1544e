# SPDX-License-Identifier: Apache-2.0
"""A small client of the conversation with a runner: what Parallax does, without its limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parallax._files import write_archive


class Client:
    """A runner that is started, asked and ended. ``stderr`` is what it wrote there, complete after ``close``."""

    def __init__(self, command: Sequence[str], folder: Path, **environment: str) -> None:
        self._folder = folder
        self._errors = folder / "stderr"
        self._answers = 0
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env={**os.environ, **environment},
            )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.close()

    def say(self, line: str) -> dict[str, Any] | None:
        """Sends a line as it is; the answer, None where the program ended instead."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        return json.loads(answer) if answer else None

    def ask(self, request: str, **members: Any) -> dict[str, Any]:
        """Sends a request; fails the test where there is no answer."""
        answer = self.say(json.dumps({"request": request, **members}))
        assert answer is not None, f"the runner ended with {self._process.wait(20)}: {self.stderr}"
        return answer

    def load(self, model: Path, **members: Any) -> dict[str, Any]:
        """Sends a load of a model."""
        return self.ask("load", model=str(model), folder=str(self._folder), **members)

    def run(self, wanted: Sequence[str], inputs: Any = None, data_set: Path | None = None, **members: Any) -> dict[str, Any]:
        """Sends a run with arrays, or with a folder of a data set."""
        self._answers += 1
        archive = None
        if inputs is not None:
            archive = str(self._folder / f"inputs-{self._answers}.npz")
            write_archive(archive, inputs)
        return self.ask(
            "run", inputs=archive, data_set=str(data_set or ""), wanted=list(wanted),
            answer=str(self._folder / f"answer-{self._answers}"), **members,
        )

    @property
    def stderr(self) -> str:
        """All that it wrote to stderr until now."""
        return self._errors.read_text()

    @property
    def anonymous_bytes(self) -> int:
        """The anonymous memory that it holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:"))

    def close(self) -> int:
        """Ends stdin and gives back the exit code."""
        assert self._process.stdin is not None and self._process.stdout is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(240)  # torch takes its time to end on a machine that is busy


class Peak:
    """The largest anonymous memory that a runner holds in a block, above what it held before."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stop = threading.Event()
        self.bytes = 0

    def __enter__(self) -> Peak:
        self._before = self._client.anonymous_bytes
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.002):
            self.bytes = max(self.bytes, self._client.anonymous_bytes - self._before)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def runner(folder: Path, name: str, argument: str = "", python: str = sys.executable, **environment: str) -> Client:
    """A runner of the package."""
    return Client([python, "-B", "-m", "parallax.runners", name, *([argument] if argument else [])], folder, **environment)
