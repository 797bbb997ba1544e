# SPDX-License-Identifier: Apache-2.0
"""The verbs that write files: what each reads and writes, how it is run once, and whether two results are the same."""

import io
import os
import re
import shutil
import struct
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import attack_paths
import judge
import mutate_dumps
import seeds
import wire as w


class Writer(NamedTuple):
    name: str
    line: str
    may_stay: str = "$^"  # files that may stay after a failure or a signal, as a pattern: a dump is written as it goes


UNFINISHED = r"out/.*\.plx$|out/dump$"
WRITERS = (
    Writer("dump", "run in/m.onnx --with reference,cpu --dump out/dump", UNFINISHED),
    Writer("baseline", "run in/m.onnx --with cpu --save-baseline out/kept.plx", UNFINISHED),
    Writer("report", "run in/m.onnx --with reference,cpu --html out/r.html --csv out/r.csv --junit out/r.xml --svg out/r.svg "
                     "--dot out/r.dot --netron out/n.json --model-explorer out/e.json", r"out/.*\.(html|csv|xml|svg|dot|json)$"),
    Writer("rewrite", "rewrite in/external.onnx -o out/new.onnx"),
    Writer("convert", "convert in/external.onnx --to float16 -o out/half.onnx"),
    Writer("extract", "extract in/m.onnx --to y -o out/part"),
    Writer("reduce", "reduce in/a.onnx --against in/b.onnx -o out/small", r"out/small(/journal\.jsonl)?$"),
    Writer("merge-decoders", "merge-decoders in/first.textproto in/later.textproto -o out/merged.onnx"),
    Writer("export npz", "export in/good.plx -o out/t.npz"),
    Writer("export safetensors", "export in/good.plx -o out/t.safetensors"),
    Writer("export onnx", "export in/good.plx -o out/t.onnx"),
    Writer("export folder", "export in/good.plx -o out/folder"),
    Writer("export data set", "export in/good.plx -o out/test_data_set_0"),
    Writer("import", "import in/t.npz -o out/new.plx", UNFINISHED),
    Writer("repair", "repair in/unfinished.plx -o out/new.plx", UNFINISHED),
    Writer("tensor", "tensor in/good.plx y -o out/y.npy"),
    Writer("dot", "dot in/m.onnx -o out/m.svg"),
    Writer("profile", "profile in/m.onnx --with cpu --iterations 1 --trace out/t.json"),
    Writer("audit-fp16", "audit-fp16 in/m.onnx --keep-file out/keep.txt --csv out/a.csv --html out/a.html",
           r"out/.*\.(txt|html|csv)$"),
)


def model_with_external_data():
    """y = Relu(x w + b) with weights of 4 KiB in a file next to it, and that file."""
    weight = w.external_tensor("w", (32, 32), location="external.data", offset=0, length=4096)
    bias = w.external_tensor("b", (32,), location="external.data", offset=4096, length=128)
    nodes = [w.node("MatMul", ["x", "w"], ["p"]), w.node("Add", ["p", "b"], ["s"]), w.node("Relu", ["s"], ["y"])]
    graph = w.graph(nodes, [w.value("x", dims=(4, 32))], [w.value("y", dims=(4, 32))], [weight, bias])
    return w.model(graph), struct.pack("<1056f", *(0.01 * (index % 37 - 18) for index in range(1056)))


def make_inputs(program, folder):
    """Writes in/ with what every writer reads, and an empty out/ next to it."""
    inputs = folder / "in"
    inputs.mkdir(parents=True)
    (folder / "out").mkdir()
    samples = attack_paths.ROOT / "samples"
    (inputs / "m.onnx").write_bytes(seeds.models()["loop"])
    model, data = model_with_external_data()
    (inputs / "external.onnx").write_bytes(model)
    (inputs / "external.data").write_bytes(data)
    for name, source in (("a.onnx", "fault_pair/A.onnx"), ("b.onnx", "fault_pair/B.onnx"),
                         ("first.textproto", "decoder/first_step.textproto"), ("later.textproto", "decoder/model.textproto")):
        shutil.copyfile(samples / source, inputs / name)

    def call(*arguments):
        subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True)

    call("run", "in/m.onnx", "--with", "cpu", "--dump", "in")
    (inputs / "cpu.plx").rename(inputs / "good.plx")
    call("export", "in/good.plx", "-o", "in/t.npz")
    records = mutate_dumps.read_records((inputs / "good.plx").read_bytes())
    (inputs / "unfinished.plx").write_bytes((inputs / "good.plx").read_bytes()[:64] + b"".join(r.raw for r in records) + bytes(4096))


def mark_as_own(path):
    """Gives a file the mark by which Parallax knows what it wrote (inspector/base/input_files.cpp)."""
    info = path.stat()
    try:
        os.setxattr(path, "user.parallax", f"{info.st_size} {info.st_mtime_ns // 10**9}.{info.st_mtime_ns % 10**9:09}".encode())
    except OSError:  # no file system for marks: some kinds of files are known by their first bytes
        pass


class Workshop:
    """Runs writers in copies of one folder, each with a TMPDIR of its own."""

    def __init__(self, program, folder):
        self.program, self.folder = str(program), Path(folder)
        self.base = self.folder / "base"
        make_inputs(self.program, self.base)
        self.inputs = judge.contents(self.base)
        self.expected = {}

    def command(self, writer):
        return [self.program, *writer.line.split()]

    def fresh(self, earlier=None):
        """A new folder with work/, whose out/ holds `earlier` files, and temporary/."""
        sandbox = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(self.base, sandbox / "work")
        (sandbox / "temporary").mkdir()
        for name, content in (earlier or {}).items():
            if content is None:
                (sandbox / "work" / name).mkdir(parents=True, exist_ok=True)
            else:
                (sandbox / "work" / name).parent.mkdir(parents=True, exist_ok=True)
                (sandbox / "work" / name).write_bytes(content)
                mark_as_own(sandbox / "work" / name)
        return sandbox

    def environment(self, sandbox, **more):
        return {**os.environ, "TMPDIR": str(sandbox / "temporary"), **more}

    def outputs(self, sandbox):
        """The files that a run added to or changed in the work folder; its inputs as they were are left out."""
        return {name: content for name, content in judge.contents(sandbox / "work").items() if self.inputs.get(name, b"\0") != content}

    def expect(self, writer):
        """(exit code, outputs, seconds) of an undisturbed run."""
        if writer.name not in self.expected:
            sandbox = self.fresh()
            answer = judge.run(self.command(writer), sandbox / "work", self.environment(sandbox))
            self.expected[writer.name] = answer.code, self.outputs(sandbox), answer.seconds
            shutil.rmtree(sandbox)
        return self.expected[writer.name]

    def remains(self, writer, sandbox, earlier=None):
        """The faults of the files after a run that failed or was ended."""
        earlier = earlier or {}
        after, complete = judge.contents(sandbox / "work"), self.expect(writer)[1]
        problems = [f"the input {name} has changed" for name, content in self.inputs.items() if after.get(name, b"\0") != content]
        for name, content in earlier.items():
            if name not in after:
                problems.append(f"the earlier {name} is gone")
            elif after[name] != content and not same({name: after[name]}, {name: complete.get(name)}):
                problems.append(f"the earlier {name} is destroyed")
        new = {name: content for name, content in after.items() if name not in self.inputs and name not in earlier}
        if not same(new, complete):  # the run had not done its work already
            problems += [f"{hidden(name)} stays" for name in new if not re.match(writer.may_stay, name)]
        problems += [f"{hidden(name)} stays in TMPDIR" for name in judge.contents(sandbox / "temporary")]
        return problems


def hidden(name):
    """A name without its random part."""
    return re.sub(r"[.-][A-Za-z0-9]{6,}$|\d+", "#", name)


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def same_file(name, left, right):
    if left is None or right is None:
        return left is right
    if name.endswith(".plx"):
        return sorted(mutate_dumps.values(left).values()) == sorted(mutate_dumps.values(right).values())
    if name.endswith(".npz"):
        try:
            return members(left) == members(right)
        except (zipfile.BadZipFile, ValueError):
            return False
    if re.search(r"\.(html|csv|xml|svg|dot|json|jsonl|sh|txt)$", name):
        return re.sub(rb"[\d.e+-]+", b"#", left) == re.sub(rb"[\d.e+-]+", b"#", right)  # times differ
    return left == right


def same(left, right):
    """True where two results hold the same, up to times."""
    return left.keys() == right.keys() and all(same_file(name, left[name], right[name]) for name in left)
