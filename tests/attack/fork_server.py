# SPDX-License-Identifier: Apache-2.0
"""One loaded program that forks a child for each run: many short runs an hour, also under AddressSanitizer."""

import os
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import judge


class ForkServer:
    """A program under the library of fork_server.cpp; `run` is judge.run with TMPDIR instead of an environment."""

    def __init__(self, program, library):
        self.folder = tempfile.TemporaryDirectory()
        requests, self.requests = os.pipe()
        self.answers, answers = os.pipe()
        environment = {**os.environ, "LD_PRELOAD": str(library), "ATTACK_SERVER": f"{requests} {answers}"}
        self.process = subprocess.Popen([str(program)], env=environment, pass_fds=(requests, answers), stdin=subprocess.DEVNULL)
        os.close(requests)
        os.close(answers)
        os.set_blocking(self.answers, False)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.requests)
        self.process.wait()
        os.close(self.answers)
        self.folder.cleanup()

    def line(self, seconds=None, child=0):
        """The next number that the server sends; None once the child has used the seconds (judge.output_of)."""
        end = time.monotonic() + 10 * seconds if seconds is not None else None
        wait = 0.0005
        while b"\n" not in self.rest:
            try:
                chunk = os.read(self.answers, 4096)
                if not chunk:
                    raise RuntimeError(f"the fork server has ended with {self.process.wait()}")
                self.rest += chunk
            except BlockingIOError:
                time.sleep(wait)
                wait = min(1.2 * wait, 0.05)
                if end is not None and wait == 0.05 and (judge.processor_seconds(child) > seconds or time.monotonic() > end):
                    return None
        number, _, self.rest = self.rest.partition(b"\n")
        return int(number)

    def run(self, command, folder, temporary=None):
        """judge.Answer of the program with command[1:] in a folder, with TMPDIR `temporary`."""
        began = time.monotonic()
        out, err = Path(self.folder.name, "out"), Path(self.folder.name, "err")
        texts = [folder, out, err, f"TMPDIR={temporary}" if temporary else "", *command[1:]]
        block = b"".join(os.fsencode(str(text)) + b"\0" for text in texts)
        request = struct.pack("<I", len(block)) + block
        while request:
            request = request[os.write(self.requests, request):]
        child = self.line()
        status = self.line(judge.HANG_SECONDS, child)
        late, deaf = status is None, False
        if status is None:
            os.kill(child, signal.SIGINT)
            status = self.line(judge.processor_seconds(child) + judge.HANG_SECONDS / 4, child)
        if status is None:
            deaf = True
            os.kill(child, signal.SIGKILL)
            status = self.line()
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return judge.Answer(os.waitstatus_to_exitcode(status), out.read_bytes(), err.read_bytes(), time.monotonic() - began, late, deaf)
