# SPDX-License-Identifier: Apache-2.0
"""Writers that are ended by SIGKILL, SIGTERM or SIGINT at random moments.

No input and no earlier result is harmed, nothing is left but what a verb documents, each finished value of an unfinished
dump is read back as it was computed, and no child outlives the program.
"""

import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import judge
import mutate_dumps
import writers

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


class Kills:
    def __init__(self, workshop):
        self.workshop = workshop

    def judged(self, writer, number, delay, again):
        """The problems of one run that gets signal `number` after `delay` seconds."""
        code, complete, _ = self.workshop.expect(writer)
        earlier = complete if again else None
        sandbox = self.workshop.fresh(earlier)
        try:
            with subprocess.Popen(self.workshop.command(writer), cwd=sandbox / "work", env=self.workshop.environment(sandbox),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  start_new_session=True) as process:
                time.sleep(delay)
                process.send_signal(number)
                try:
                    stderr = judge.output_of(process, judge.HANG_SECONDS)[1]
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    return [f"does not end at {number.name}"]
            problems = [] if self.children_end(process.pid) else ["a child outlives it"]
            if process.returncode == code:
                return problems + ([] if writers.same(self.workshop.outputs(sandbox), complete) else ["it passes with other files"])
            if process.returncode != -number:
                problems.append(f"exit code {process.returncode} at {number.name}: {stderr.decode(errors='replace')[-200:]}")
            problems += judge.text_faults(stderr, "stderr")
            if number == signal.SIGKILL:  # nobody could remove them: only that they are harmless is asked
                problems += [problem for problem in self.workshop.remains(writer, sandbox, earlier) if not problem.endswith(("stays", "TMPDIR"))]
            else:
                problems += self.workshop.remains(writer, sandbox, earlier)
            return problems + self.dump_faults(sandbox, complete)
        finally:
            shutil.rmtree(sandbox)

    @staticmethod
    def children_end(group):
        """True where all processes of the group end within seconds."""
        end = time.monotonic() + judge.HANG_SECONDS
        while time.monotonic() < end:
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.01)
        os.killpg(group, signal.SIGKILL)
        return False

    def dump_faults(self, sandbox, complete):
        """Every value that an unfinished dump holds is the one that the whole dump holds; repair keeps them all."""
        work, problems = sandbox / "work", []
        for path in sorted((work / "out").rglob("*.plx")):
            name = str(path.relative_to(work))
            own = name.replace(".unfinished.", ".")  # next to an older dump
            if own not in complete:
                continue
            found = mutate_dumps.values(path.read_bytes())
            if not found:
                continue
            whole = list(mutate_dumps.values(complete[own]).values())
            problems += ["an unfinished dump holds a value that differs"] * any(value not in whole for value in found.values())
            new = str(work / "saved.plx")
            repaired = judge.run([self.workshop.program, "repair", name, "-o", new], work)
            if repaired.code != 0:
                problems.append(f"repair of an unfinished dump: {repaired.stderr.decode(errors='replace')[-200:]}")
            elif len(mutate_dumps.values(Path(new).read_bytes())) != len(found):
                problems.append("repair of an unfinished dump loses values")
            elif judge.run([self.workshop.program, "check", new], work).code != 0:
                problems.append("repair of an unfinished dump writes one that check refuses")
            Path(new).unlink(missing_ok=True)
        return problems


def describe(writer, number, share, again):
    return f"{writer.name}{' over earlier results' if again else ''}: {number.name} at {share:.4f} of its time"


def attack(program, folder, seed, count, seconds, jobs, only=""):
    """Ends `count` runs until `seconds` have passed; [(problem, case)] and how many runs there were."""
    workshop = writers.Workshop(program, folder)
    kills, chance = Kills(workshop), random.Random(seed)
    cases = []
    for index in range(count):
        writer = writers.WRITERS[index % len(writers.WRITERS)]
        cases.append((writer, chance.choice(SIGNALS), chance.random() * 1.1, chance.random() < 0.5))
    cases = [case for case in cases if only in describe(*case)]
    for writer in writers.WRITERS:
        workshop.expect(writer)
    end = time.monotonic() + seconds

    def one(case):
        writer, number, share, again = case
        return (describe(*case), kills.judged(writer, number, share * workshop.expect(writer)[2], again)) if time.monotonic() < end else None

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        answers = [answer for answer in pool.map(one, cases) if answer]
    return [(problem, case) for case, problems in answers for problem in problems], len(answers)
