# SPDX-License-Identifier: Apache-2.0
"""Mutated models, dumps and tensor files, each given to one verb of the real program in a folder of its own.

A mutant is determined by the seed and its number alone, so that `run --only mutants --seed S --first N --count 1`
repeats it.
"""

import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import fork_server
import judge
import mutate_dumps
import mutate_models
import mutate_tensor_files
import seeds

MODEL_SHARE, DUMP_SHARE = 0.5, 0.85  # of the mutants: models, dumps from there on, tensor files after that
SHOT_SHARE = 0.01  # a window takes as long as thirty other verbs

# Verbs for a model m.onnx; VALUE is one of its values, OTHER the model before it was changed.
MODEL_LINES = tuple(line.split() for line in """
check m.onnx
show m.onnx
show m.onnx --shapes
dot m.onnx
dot m.onnx -o out/m.svg
dot m.onnx --depth 1
run m.onnx --with reference --memory-limit 256M --threads 1
run m.onnx --with cpu --memory-limit 256M --threads 1
run m.onnx --with reference,cpu --memory-limit 256M --threads 1 --html out/r.html --csv out/r.csv --junit out/r.xml
run m.onnx --with reference,cpu --memory-limit 256M --threads 1 --svg out/r.svg --dot out/r.dot --netron out/r.json
run m.onnx --with cpu --memory-limit 256M --threads 1 --dump out/dump --model-explorer out/e.json
run m.onnx --against other.onnx --memory-limit 256M --threads 1
run other.onnx --against m.onnx --with cpu --memory-limit 256M --threads 1
blame m.onnx --against other.onnx --memory-limit 256M --threads 1
profile m.onnx --with cpu --iterations 1 --memory-limit 256M --threads 1 --trace out/t.json
bench m.onnx --with reference --iterations 1 --memory-limit 256M --threads 1
rewrite m.onnx -o out/new.onnx --threads 1
rewrite m.onnx -o out/new.onnx --patterns all --threads 1
extract m.onnx --to VALUE -o out/part --memory-limit 256M --threads 1
reduce m.onnx --with reference,cpu -o out/small --memory-limit 256M --threads 1
convert m.onnx --to float16 -o out/half.onnx --threads 1
convert m.onnx --to bfloat16 -o out/half.onnx --keep-io --threads 1
audit-fp16 m.onnx --threads 1 --csv out/a.csv --html out/a.html
merge-decoders m.onnx other.onnx -o out/merged.onnx --threads 1
merge-decoders other.onnx m.onnx -o out/merged.onnx --threads 1
import data -o out/data.plx --model m.onnx
generate m.onnx --prompt-ids 1,2 --max-new-tokens 2 --memory-limit 256M --threads 1
""".strip().splitlines())

DUMP_LINES = tuple(line.split() for line in """
check bad.plx
show bad.plx
show bad.plx --shapes
dot bad.plx
dot bad.plx -o out/d.svg
dot good.plx bad.plx
tensor bad.plx
tensor bad.plx VALUE
tensor bad.plx VALUE --stats --histogram
tensor bad.plx VALUE -o out/v.npy
diff good.plx bad.plx
diff bad.plx good.plx --html out/r.html --csv out/r.csv --junit out/r.xml
diff bad.plx bad.plx --svg out/r.svg --netron out/r.json --model-explorer out/e.json
blame bad.plx good.plx
export bad.plx -o out/t.npz
export bad.plx -o out/t.safetensors
export bad.plx -o out/t.onnx
export bad.plx -o out/folder
export bad.plx -o out/test_data_set_0
import bad.plx -o out/new.plx
repair bad.plx -o out/new.plx
run other.onnx --with cpu --baseline bad.plx --threads 1 --memory-limit 256M
""".strip().splitlines())

TENSOR_LINES = {
    "npy": ["import bad.npy -o out/new.plx", "import data -o out/new.plx", "run m.onnx --with cpu --threads 1 --input x=bad.npy"],
    "npz": ["import bad.npz -o out/new.plx", "import bad.npz -o out/new.plx --model m.onnx", "run m.onnx --with cpu --threads 1 --inputs bad.npz"],
    "safetensors": ["import bad.safetensors -o out/new.plx", "run m.onnx --with cpu --threads 1 --inputs bad.safetensors"],
    "pb": ["import test_data_set_0 -o out/new.plx", "run m.onnx --with cpu --threads 1 --inputs test_data_set_0"],
}


class Mutants:
    """Makes, runs and judges mutants of one seed."""

    def __init__(self, program, seed, keep, library=None):
        """With the library of fork_server.cpp the program is loaded once for all runs."""
        self.program, self.seed, self.keep = Path(program), seed, Path(keep)
        self.server = fork_server.ForkServer(program, library) if library else None
        self.gui = self.program.parent / "parallax-gui"
        self.models = seeds.models()
        self.dumps = {}

    def prepare(self):
        """Writes the dumps that mutants are made of: every level of capture, one executor or both."""
        for name, options in (("loop", "--with cpu"), ("functions", "--with reference --capture stats"), ("sequence", "--with reference"),
                              ("if", "--with cpu --capture sample"), ("strings", "--with reference"), ("scan_filter/model", "--with cpu"),
                              ("variadic", "--with cpu --capture shape"), ("scan", "--with reference")):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "m.onnx").write_bytes(self.models[name])
                line = [self.program, "run", "m.onnx", *options.split(), "--dump", "out"]
                subprocess.run(line, cwd=folder, check=True, capture_output=True)
                self.dumps[name] = next(Path(folder, "out").glob("*.plx")).read_bytes()

    def make(self, number, folder):
        """Writes the files of a mutant; (command, what was done)."""
        chance = random.Random(f"{self.seed}/{number}")
        kind = chance.random()
        if kind < MODEL_SHARE:
            files, line, done = self.model(chance)
        elif kind < DUMP_SHARE:
            files, line, done = self.dump(chance)
        else:
            files, line, done = self.tensor_file(chance)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        (folder / "out").mkdir()
        program = self.program
        if chance.random() < SHOT_SHARE and self.gui.exists():
            shown = next(name for name in ("m.onnx", "bad.plx") if name in files or name == "m.onnx")
            program, line = self.gui, [shown, "--shot", "out/shot.png", "--size", "320x240"]
        elif chance.random() < 0.25:
            line = [*line, "--json"]
        return [str(program), *line], done

    def model(self, chance):
        if chance.random() < 0.5:
            name, original = chance.choice(sorted(self.models.items()))
        else:
            name, original = chance.choice(sorted(seeds.operator_models().items()))
        content, done = mutate_models.mutant(chance, original)
        files = {"m.onnx": content, "other.onnx": original, "w.data": bytes(24), "data/x.npy": mutate_tensor_files.npy(chance)}
        line = list(chance.choice(MODEL_LINES))
        if "VALUE" in line:
            line[line.index("VALUE")] = self.value_of(chance, content)
        return files, line, [name, *done]

    @staticmethod
    def value_of(chance, content):
        """A name of the model that a command line can hold."""
        try:
            names = [name for node in mutate_models.messages(mutate_models.t.read_message(content), "Node")
                     for name in node.of(mutate_models.t.OUTPUT)]
        except (ValueError, IndexError):
            names = []
        names = [os.fsdecode(name) for name in names if name and b"\0" not in name and not name.startswith(b"-")]
        return chance.choice(names or ["y"])

    def dump(self, chance):
        name, original = chance.choice(sorted(self.dumps.items()))
        content, done = mutate_dumps.mutant(chance, original)
        line = list(chance.choice(DUMP_LINES))
        if "VALUE" in line:
            paths = [record.field(3) for record in mutate_dumps.read_records(original) if record.kind == mutate_dumps.TENSOR]
            line[line.index("VALUE")] = chance.choice(paths).decode()
        return {"bad.plx": content, "good.plx": original, "other.onnx": self.models[name], "m.onnx": self.models[name]}, line, [name, *done]

    def tensor_file(self, chance):
        ending = chance.choice(sorted(mutate_tensor_files.MAKERS))
        content = mutate_tensor_files.mutant(chance, ending)
        files = {"pb": {"test_data_set_0/input_0.pb": content}, "npy": {"bad.npy": content, "data/x.npy": content}}
        line = chance.choice(TENSOR_LINES[ending]).split()
        return {"m.onnx": seeds.models()["variadic"], **files.get(ending, {f"bad.{ending}": content})}, line, [ending]

    def judged(self, number):
        """(number, verb, faults, command) of one mutant; a faulty one's files are kept."""
        folder = Path(tempfile.mkdtemp(prefix="attack-"))
        try:
            work, temporary = folder / "work", folder / "temporary"
            work.mkdir()
            temporary.mkdir()
            command, done = self.make(number, work)
            before = judge.contents(work)
            answer = self.run(command, work, temporary)
            found = judge.faults(answer, command) + self.file_faults(answer, command, work, temporary, before)
            if found:
                self.keep_files(number, work, before, command, done, found, answer)
            return number, Path(command[0]).name if "gui" in command[0] else command[1], found, answer.code
        finally:
            shutil.rmtree(folder)

    def run(self, command, work, temporary=None):
        if self.server and command[0] == str(self.program):
            return self.server.run(command, work, temporary)
        return judge.run(command, work, {**os.environ, **({"TMPDIR": str(temporary)} if temporary else {})})

    def file_faults(self, answer, command, work, temporary, before):
        """The faults of the files after a run: inputs, temporary files, reports, models and dumps that were written."""
        after = judge.contents(work)
        problems = [f"the input {name} has changed" for name in before if after.get(name) != before[name]]
        written = [name for name in after if name not in before]
        problems += [f"a file outside of the output folder: {Path(name).parts[0]}" for name in written if not name.startswith("out")]
        if judge.contents(temporary) and not answer.deaf:
            problems.append("files stay in TMPDIR")
        if answer.code < 0:
            return problems
        if answer.code > 1 and command[1] not in ("run", "diff", "reduce", "generate") and any(after[name] is not None for name in written):
            problems.append(f"files stay after a failure: {Path(written[-1]).suffix}")
        for name in written:
            problems += judge.artifact_faults(work / name)
        if answer.code == 0:
            problems += self.output_faults(command, work, written)
        return problems

    def output_faults(self, command, work, written):
        """A dump that was written is intact; a model that was made of a valid one is valid."""
        for name in written:
            if Path(name).suffix not in (".plx", ".onnx") or command[1] in ("export", "import"):
                continue
            checked = self.run([str(self.program), "check", name], work)
            if checked.code == 0:
                continue
            if name.endswith(".onnx") and self.run([str(self.program), "check", "m.onnx"], work).code != 0:
                continue
            said = checked.stdout.decode(errors="replace") or checked.stderr.decode(errors="replace")
            return [f"{command[1]} writes a {Path(name).suffix} that check refuses: {said[:200]}"]
        return []

    def keep_files(self, number, work, before, command, done, found, answer):
        kept = self.keep / f"{self.seed}-{number}"
        shutil.rmtree(kept, ignore_errors=True)
        for name, content in before.items():
            if content is not None:
                (kept / name).parent.mkdir(parents=True, exist_ok=True)
                (kept / name).write_bytes(content)
        (kept / "out").mkdir(exist_ok=True)
        said = answer.stderr.decode(errors="backslashreplace")[-4000:]
        (kept / "finding.txt").write_text(f"{command}\nchanges: {done}\nfaults: {found}\nexit code: {answer.code}\n\n{said}\n",
                                          errors="backslashreplace")


def kind_of(problem):
    """A fault without what depends on the input, so that equal defects are listed once."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|0x[0-9a-f]+|\d+", "#", problem)
    return re.sub(r"(^|\n)(?!parallax: )[^\n]*\n(?=parallax: )", r"\1", text)[:160]


worker = None  # the Mutants of a worker process


def start_worker(*arguments):
    global worker
    worker = Mutants(*arguments)
    worker.prepare()


def judge_chunk(first, end, deadline):
    """The first three of judged() for the mutants first to end, as far as the deadline allows."""
    return [worker.judged(number)[:3] for number in range(first, end) if time.monotonic() < deadline]


def attack(program, seed, first, count, seconds, keep, jobs, library=None):
    """Runs mutants until `count` are done or `seconds` have passed; [(problem, verb, number)] and how many there were."""
    deadline, end, chunk = time.monotonic() + seconds, first + count, 25
    findings, done = [], 0
    with concurrent.futures.ProcessPoolExecutor(jobs, initializer=start_worker, initargs=(program, seed, keep, library)) as pool:
        running = set()
        while True:
            while first < end and len(running) < 2 * jobs and time.monotonic() < deadline:
                running.add(pool.submit(judge_chunk, first, min(first + chunk, end), deadline))
                first += chunk
            if not running:
                return findings, done
            finished, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for number, verb, problems in (answer for future in finished for answer in future.result()):
                done += 1
                findings += [(problem, verb, number) for problem in problems]
