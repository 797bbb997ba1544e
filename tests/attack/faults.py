# SPDX-License-Identifier: Apache-2.0
"""Failing system calls around every writer: the k-th write, open, rename and so on fails, for k from 1 to the end.

A run under a failing call ends with exit code 5 (4 where memory was refused) and a sentence and no file stays, or it did
without the call and wrote what it writes undisturbed; after EINTR and a short write it must. Earlier results and inputs
are never harmed.
"""

import concurrent.futures
import errno
import random
import shutil
import struct
import time

import judge
import writers

CALLS = ("write", "pwrite", "open", "rename", "ftruncate", "fallocate", "mmap", "fsync", "close", "read", "mkdir", "stdio")
SHORT = 0
DISK = (errno.EIO, errno.ENOSPC)
ERRORS = {"write": (*DISK, errno.EINTR, SHORT), "pwrite": (*DISK, errno.EINTR, SHORT),
          "open": (errno.EIO, errno.EMFILE, errno.EINTR), "rename": DISK, "ftruncate": (*DISK, errno.EINTR),
          "fallocate": (*DISK, errno.EINTR), "mmap": (errno.ENOMEM,), "fsync": DISK, "close": DISK,
          "read": (errno.EIO, errno.EINTR, SHORT), "mkdir": DISK, "stdio": DISK}
ABSORBED = (SHORT, errno.EINTR)  # the run must do without the call
FULL_DISK = ("write", "pwrite", "fallocate")  # once full, a disk stays full
FOREVER = 1 << 40


class Faults:
    def __init__(self, workshop, shim):
        self.workshop, self.shim = workshop, str(shim)

    def environment(self, sandbox, fault):
        counts = sandbox / "counts"
        counts.write_bytes(bytes(8 * len(CALLS)))
        more = {"LD_PRELOAD": self.shim, "ATTACK_FOLDER": str(sandbox / "work"), "ATTACK_COUNTS": str(counts)}
        if fault is not None:
            more["ATTACK_FAULT"] = "{} {} {} {}".format(*fault)
        return self.workshop.environment(sandbox, **more)

    def counts(self, writer, earlier):
        """How often a writer makes each call."""
        sandbox = self.workshop.fresh(earlier)
        judge.run(self.workshop.command(writer), sandbox / "work", self.environment(sandbox, None))
        found = struct.unpack(f"<{len(CALLS)}Q", (sandbox / "counts").read_bytes())
        shutil.rmtree(sandbox)
        return dict(zip(CALLS, found))

    def cases(self):
        """Every (writer, with earlier results, fault)."""
        for writer in writers.WRITERS:
            for again in (False, True):
                earlier = self.workshop.expect(writer)[1] if again else None
                for name, count in self.counts(writer, earlier).items():
                    for number in range(1, count + 1):
                        for error in ERRORS[name]:
                            yield writer, again, (name, error, number, number)
                        if name in FULL_DISK:
                            yield writer, again, (name, errno.ENOSPC, number, FOREVER)

    def judged(self, writer, again, fault):
        """The problems of one run."""
        code, complete, _ = self.workshop.expect(writer)
        earlier = complete if again else None
        sandbox = self.workshop.fresh(earlier)
        try:
            command = self.workshop.command(writer)
            answer = judge.run(command, sandbox / "work", self.environment(sandbox, fault))
            error = fault[1]
            problems = judge.faults(answer, command)
            if answer.code == code and not problems:
                outputs = self.workshop.outputs(sandbox)
                problems = [] if writers.same(outputs, complete) else ["it passes, but the files are not as without the fault"]
            elif error in ABSORBED:
                problems += [f"exit code {answer.code}: {answer.stderr.decode(errors='replace')[-200:]}"]
            elif answer.code not in (4, 5) or (answer.code == 4 and error != errno.ENOMEM):
                problems += [f"exit code {answer.code} and not 5: {answer.stderr.decode(errors='replace')[-200:]}"]
            if answer.code != code:
                problems += self.workshop.remains(writer, sandbox, earlier)
            return problems
        finally:
            shutil.rmtree(sandbox)


def describe(writer, again, fault):
    name, error, first, last = fault
    word = "short" if error == SHORT else errno.errorcode[error]
    return f"{writer.name}{' over earlier results' if again else ''}: {word} at {name} {first}{' and all later' if last > first else ''}"


def attack(program, shim, folder, seed, count, seconds, jobs, only=""):
    """Runs `count` cases drawn by the seed (0: all) until `seconds` have passed; [(problem, case)], how many, of how many."""
    faults = Faults(writers.Workshop(program, folder), shim)
    cases = [case for case in faults.cases() if only in describe(*case)]
    random.Random(seed).shuffle(cases)
    end = time.monotonic() + seconds

    def one(case):
        return (case, faults.judged(*case)) if time.monotonic() < end else None

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        answers = [answer for answer in pool.map(one, cases[:count or len(cases)]) if answer]
    return [(problem, describe(*case)) for case, problems in answers for problem in problems], len(answers), len(cases)
