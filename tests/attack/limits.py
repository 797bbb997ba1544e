# SPDX-License-Identifier: Apache-2.0
"""Writers under limits and in hostile surroundings: little memory, few files, small files, no HOME, no TMPDIR, an output
folder that nobody may write, output that goes nowhere; and the permissions of everything that is written."""

import concurrent.futures
import os
import random
import shutil
import stat
import subprocess
import time

import judge
import writers

MEBIBYTE = 1 << 20
MEMORY = tuple(size * MEBIBYTE for size in (320, 384, 448, 512, 640, 768, 1024, 2048))
FILES = (3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)
FILE_BYTES = (0, 1, 64, 1000, 4096, 16384, 65536)
UMASKS = (0o077, 0o027, 0o022, 0o000)
NOBODY = 65534
LOADER_CODE = 127  # the dynamic loader's own, where not even the libraries fit


def limited(command, folder, environment, limits=(), mask=None, user=None, **streams):
    """An answer under resource limits [(which, value)], a umask and a user's rights."""
    words = [*command]
    for which, value in limits:
        words = ["prlimit", f"--{which}={value}:{value}", "--", *words]
    options = {} if mask is None else {"umask": mask}
    if user is not None:
        options |= {"user": user, "group": user, "extra_groups": []}
    return judge.run(words, folder, environment, **options, **streams)


class Limits:
    def __init__(self, workshop):
        self.workshop = workshop
        self.user = NOBODY if os.geteuid() == 0 else None
        self.obstacle = self.cannot_drop()

    def cannot_drop(self):
        """Why folders cannot be made unwritable here: root writes everywhere. Empty: they can."""
        if self.user is None:
            return ""
        try:
            done = subprocess.run([self.workshop.program, "--version"], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False)
        except OSError as error:
            return str(error)
        return "" if done.returncode == 0 else done.stderr.decode(errors="replace")

    def judged(self, writer, name, options):
        """The problems of a writer in one surrounding."""
        code, complete, _ = self.workshop.expect(writer)
        sandbox = self.workshop.fresh()
        try:
            environment, arguments = self.workshop.environment(sandbox), dict(options)
            for key, value in arguments.pop("environment", {}).items():
                environment[key] = value.format(sandbox=sandbox)
            if arguments.pop("read_only", False):
                self.lock(sandbox)
                arguments["user"] = self.user
            command = self.workshop.command(writer)
            answer = limited(command, sandbox / "work", environment, **arguments)
            return self.verdict(writer, sandbox, command, answer, code, complete, name)
        finally:
            subprocess.run(["chmod", "-R", "u+rwx", sandbox], check=True)
            shutil.rmtree(sandbox)

    @staticmethod
    def lock(sandbox):
        os.chmod(sandbox, 0o755)
        os.chmod(sandbox / "temporary", 0o1777)
        os.chmod(sandbox / "work" / "out", 0o555)

    def verdict(self, writer, sandbox, command, answer, code, complete, name):
        if answer.code == LOADER_CODE and b"shared" in answer.stderr:
            return []
        allowed = (4, 5) if name.startswith("memory") else (5,)
        right = {code, *allowed} | ({2} if "nowhere" in name or "read-only" in name else set())
        problems = judge.faults(answer, command, right)
        if answer.code == code and code not in allowed:
            outputs = self.workshop.outputs(sandbox)
            return problems + ([] if writers.same(outputs, complete) else ["it passes with other files"])
        return problems + self.workshop.remains(writer, sandbox)

    def surroundings(self):
        """(name, options of judged)."""
        yield from ((f"memory {size // MEBIBYTE} MiB", {"limits": [("as", size)]}) for size in MEMORY)
        yield from ((f"{count} open files", {"limits": [("nofile", count)]}) for count in FILES)
        yield from ((f"files of {size} bytes", {"limits": [("fsize", size)]}) for size in FILE_BYTES)
        yield "HOME nowhere", {"environment": {"HOME": "{sandbox}/nowhere"}}
        yield "TMPDIR nowhere", {"environment": {"TMPDIR": "{sandbox}/nowhere"}}
        yield "TMPDIR a file nowhere", {"environment": {"TMPDIR": "{sandbox}/work/in/m.onnx"}}
        if not self.obstacle:
            yield "output folder read-only", {"read_only": True}

    def streams(self, writer):
        """The problems of a full or closed stdout."""
        sandbox = self.workshop.fresh()
        try:
            command = self.workshop.command(writer)
            with open("/dev/full", "wb") as full:
                answer = judge.run(command, sandbox / "work", self.workshop.environment(sandbox), stdout=full)
            problems = judge.faults(answer, command)
            undisturbed = judge.run(command, self.workshop.fresh() / "work", self.workshop.environment(sandbox))
            if undisturbed.stdout and answer.code != 5:
                problems.append(f"exit code {answer.code} where stdout is full")
            closed = judge.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], self.workshop.fresh() / "work", self.workshop.environment(sandbox))
            if closed.code < 0:
                problems.append(f"signal {-closed.code} where stdout is closed")
            return problems
        finally:
            shutil.rmtree(sandbox)

    def permissions(self, writer, mask):
        """Files and folders have the permissions that the umask leaves; none but scripts can be executed."""
        sandbox = self.workshop.fresh()
        try:
            limited(self.workshop.command(writer), sandbox / "work", self.workshop.environment(sandbox), mask=mask)
            subprocess_paths = [path for path in (sandbox / "work").rglob("*") if str(path.relative_to(sandbox / "work")) not in self.workshop.inputs]
            problems = []
            for path in subprocess_paths:
                mode = stat.S_IMODE(path.lstat().st_mode)
                wanted = (0o777 if path.is_dir() or path.suffix == ".sh" else 0o666) & ~mask
                if mode != wanted:
                    problems.append(f"{writers.hidden(path.name)} has mode {mode:03o} and not {wanted:03o}")
            return problems
        finally:
            subprocess.run(["chmod", "-R", "u+rwx", sandbox], check=True)
            shutil.rmtree(sandbox)


def attack(program, folder, seed, count, seconds, jobs, only=""):
    """`count` writers in surroundings drawn by the seed (0: each in each); [(problem, case)] and how many runs there were."""
    workshop = writers.Workshop(program, folder)
    limits = Limits(workshop)
    if limits.obstacle:
        print(f"limits: no read-only folders, since this is root: {limits.obstacle}")
    cases = []
    for writer in writers.WRITERS:
        workshop.expect(writer)
        cases += [(writer, name, lambda writer=writer, name=name, options=options: limits.judged(writer, name, options))
                  for name, options in limits.surroundings()]
        cases += [(writer, f"umask {mask:03o}", lambda writer=writer, mask=mask: limits.permissions(writer, mask)) for mask in UMASKS]
        cases.append((writer, "no stdout", lambda writer=writer: limits.streams(writer)))
    cases = [case for case in cases if only in f"{case[0].name}: {case[1]}"]
    random.Random(seed).shuffle(cases)
    end = time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        answers = list(pool.map(lambda case: (case, case[2]()) if time.monotonic() < end else None, cases[:count or len(cases)]))
    done = [answer for answer in answers if answer]
    return [(problem, f"{case[0].name}: {case[1]}") for case, problems in done for problem in problems], len(done)
