#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--memory-limit: whatever would exceed it is refused by name before it is there, and the program's peak shows it.

memory_limit_test.py PARALLAX
"""

import os
import re
import struct
import subprocess
import sys
import zipfile

from program import ProgramTest, main, node

MIB = 1 << 20
LIMIT = 64 * MIB
LARGE = 256 * MIB  # bytes of what does not fit
COUNT = LARGE // 4  # float32
ALLOWANCE = 32 * MIB  # freed pages that are kept for the next payload (16 MiB), buffers of tasks, the allocator's slack

WIRE_BYTES, WIRE_VARINT = 2, 0


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, content):
    """A field of a protobuf message: an integer, text, or the bytes of a message."""
    if isinstance(content, int):
        return varint(number << 3 | WIRE_VARINT) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return b"".join((varint(number << 3 | WIRE_BYTES), varint(len(content)), content))


def tensor(name, count):
    """A TensorProto of float32 zeros."""
    return field(1, count) + field(2, 1) + field(8, name) + field(9, bytes(4 * count))


def value_info(name, dims=(), dtype=1):
    shape = b"".join(field(1, field(1, size)) for size in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def proto_node(op, inputs, outputs, attributes=b""):
    return b"".join(field(1, name) for name in inputs.split()) + b"".join(field(2, name) for name in outputs.split()) + field(4, op) + attributes


def branch(attribute, graph):
    return field(5, field(1, attribute) + field(6, graph) + field(20, 5))


# A process of its own measures: a child's peak begins with what its parent has in memory.
MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, file=open(sys.argv[1], "w"))
"""


class MemoryLimit(ProgramTest):
    def peak(self, line, environment=None):
        """(exit code, messages, most bytes that the program had in memory)"""
        log, measured = self.folder / "log", self.folder / "measured"
        with open(log, "wb") as out:
            subprocess.run([sys.executable, "-c", MEASURE, measured, self.program, *line.split()], cwd=self.folder, stdout=out, stderr=out,
                           env={**os.environ, **(environment or {})}, check=True)
        code, peak = map(int, measured.read_text().split())
        return code, log.read_text(), peak

    def kept(self, line, allowed=(4,), limit=LIMIT, environment=None):
        """Runs the line, which must stay within the limit; its messages."""
        base = self.peak("run m.textproto --with reference,cpu")[2]
        code, messages, peak = self.peak(f"{line} --memory-limit {limit}", environment)
        self.assertIn(code, allowed, messages)
        self.assertLess(peak, base + limit + ALLOWANCE, f"{line}: {peak >> 20} MiB, of which {base >> 20} MiB are the program's own: {messages}")
        return messages

    def refused(self, line, what, needed=LARGE, code=4):
        messages = self.kept(line, (code,))
        found = re.search(re.escape(what) + r" needs (\d+) bytes besides (\d+) in use, (\d+) in all, and the memory limit is (\d+): "
                          r"raise --memory-limit .*--dim or --shape\n$", messages)
        self.assertIsNotNone(found, f"{line}: {messages}")
        self.assertGreaterEqual(int(found[1]), needed)
        self.assertLess(int(found[1]), needed + MIB)
        self.assertEqual(int(found[1]) + int(found[2]), int(found[3]))
        self.assertEqual(int(found[4]), LIMIT)

    def write_large(self):
        self.write_model("large.textproto", node("Neg", "x", "y"), dims=f"dim {{ dim_value: {COUNT} }}")

    def test_generated_inputs(self):
        self.write_large()
        for verb in ("run --with reference", "run --with cpu", "run --with reference,cpu", "bench --with cpu", "profile --with cpu",
                     "blame --with reference,cpu", "reduce --with reference,cpu -o part", "extract --to y -o part"):
            verb, options = verb.split(" ", 1)
            self.refused(f"{verb} large.textproto {options}", f"generated input 'x' float32[{COUNT}]")

    def test_a_size_that_is_asked_for(self):
        self.write_model("free.textproto", node("Neg", "x", "y"), dims='dim { dim_param: "n" }')
        self.refused(f"run free.textproto --with cpu --dim n={COUNT}", f"generated input 'x' float32[{COUNT}]")
        self.kept("run free.textproto --with cpu --dim n=1000", (0,))
        messages = self.kept(f"run free.textproto --with cpu --dim n={1 << 56}")
        self.assertIn(f"needs {1 << 58} bytes", messages)

    def write_npy(self, name, count):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}"
        header += " " * (117 - len(header)) + "\n"
        with open(self.folder / name, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            file.truncate(10 + len(header) + 4 * count)

    def test_inputs_of_tensor_files(self):
        self.write_large()
        self.write_npy("x.npy", COUNT)
        self.refused("run large.textproto --with reference --input x=x.npy", "'x.npy'")
        with zipfile.ZipFile(self.folder / "x.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.write(self.folder / "x.npy", "x.npy")
        messages = self.kept("run large.textproto --with reference --inputs x.npz")
        self.assertRegex(messages, r"'x\.npz': entry 'x\.npy': a tensor uint8\[\d+\] needs \d+ bytes besides \d+ in use")
        header = f'{{"x":{{"dtype":"F32","shape":[{COUNT}],"data_offsets":[0,{LARGE}]}}}}'.encode()
        with open(self.folder / "x.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + LARGE)
        self.refused("run large.textproto --with reference --inputs x.safetensors", "'x.safetensors'")

    def test_inputs_and_expected_outputs_of_a_data_set(self):
        self.write_large()
        data = self.folder / "data"
        data.mkdir()
        (data / "input_0.pb").write_bytes(tensor("x", COUNT))
        self.refused("run large.textproto --with cpu --inputs data", "'data/input_0.pb'")
        (data / "input_0.pb").write_bytes(tensor("x", 8))
        (data / "output_0.pb").write_bytes(tensor("y", COUNT))
        self.refused("run m.textproto --with cpu --inputs data", "'data/output_0.pb'")
        (data / "output_0.pb").write_bytes(tensor("y", LIMIT // 8))  # it fits alone, and not besides the program's values
        (data / "output_1.pb").write_bytes(b"")
        self.assertIn("output_1.pb", self.peak("run m.textproto --with cpu --inputs data")[1])

    def write_binary(self, name, graph):
        (self.folder / name).write_bytes(field(1, 8) + field(8, field(2, 17)) + field(7, graph))

    def test_weights_of_bodies(self):
        def body(name, count):
            return (field(1, proto_node("ReduceSum", f"w_{name}", f"s_{name}")) + field(2, name) + field(5, tensor(f"w_{name}", count)) +
                    field(12, value_info(f"s_{name}", (1,))))
        def graph(count):
            bodies = branch("then_branch", body("then", count)) + branch("else_branch", body("else", 8))
            return (field(1, proto_node("If", "c", "y", bodies)) + field(2, "g") + field(11, value_info("c", dtype=9)) + field(12, value_info("y", (1,))))
        self.write_binary("if.onnx", graph(COUNT))
        for executor in ("reference", "cpu"):
            self.refused(f"run if.onnx --with {executor}", "'if.onnx'")
        self.write_binary("small.onnx", graph(8))
        self.kept("run small.onnx --with reference,cpu", (0,))

    def test_weights_that_fit_one_by_one(self):
        """External data is mapped: each weight counts."""
        with open(self.folder / "w.bin", "wb") as file:
            file.truncate(LIMIT)
        weights = "".join(f'initializer {{ name: "w{index}" data_type: 1 dims: {LIMIT // 8} data_location: EXTERNAL '
                          f'external_data {{ key: "location" value: "w.bin" }} external_data {{ key: "length" value: "{LIMIT // 2}" }} }} ' for index in range(3))
        nodes = node("Sum", "w0 w1 w2", "s") + node("ReduceSum", "s", "r") + node("Add", "x r", "y")
        self.write_model("m3.textproto", nodes, dims="dim { dim_value: 1 }", more=weights)
        messages = self.kept("run m3.textproto --with reference")
        self.assertRegex(messages, r"'m3\.textproto': initializer 'w2': its data needs 33554432 bytes besides 67108864 in use")

    def test_constants_that_a_rewrite_makes(self):
        size = f'initializer {{ name: "n" data_type: 7 dims: 1 int64_data: {COUNT} }} '
        nodes = node("ConstantOfShape", "n", "c") + node("ReduceSum", "c", "s") + node("Add", "x s", "y")
        self.write_model("made.textproto", nodes, dims="dim { dim_value: 1 }", more=size)
        for executor in ("reference", "cpu"):
            messages = self.kept(f"run made.textproto --with {executor}")
            self.assertRegex(messages, rf"ConstantOfShape.* needs {LARGE}\d* bytes|ConstantOfShape.* needs 2684\d+ bytes")

    def test_buffers_of_kernels(self):
        """reference:double widens its operands: a buffer that is no value."""
        self.write_model("chain.textproto", node("Neg", "x", "a") + node("Exp", "a", "b") + node("Sqrt", "b", "y"), dims=f"dim {{ dim_value: {LIMIT // 16} }}")
        for executors in ("reference", "cpu", "reference,cpu", "reference,reference:double", "cpu,reference:double"):
            self.kept(f"run chain.textproto --with {executors}", (0, 1, 4))

    def write_chain(self, name, factor):
        """Twelve values of 8 MiB."""
        nodes = node("Mul", "x k", "v0") + "".join(node("Sin" if index % 2 else "Cos", f"v{index}", f"v{index + 1}") for index in range(10)) + node("Neg", "v10", "y")
        self.write_model(name, nodes, dims=f"dim {{ dim_value: {2 * MIB} }}", more=f'initializer {{ name: "k" data_type: 1 float_data: {factor} }} ')

    def test_captures_of_blame(self):
        self.write_chain("a.textproto", 1)
        self.write_chain("b.textproto", 1.01)
        line = "blame a.textproto --against b.textproto --with cpu"
        limit = 160 * MIB  # of both sides' captures: 192 MiB
        self.assertIn("Mul", self.kept(line, (1,), limit))
        if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK):
            messages = self.kept(line, (4,), limit, {"TMPDIR": "/dev/shm"})
            self.assertRegex(messages, r"finding the causes: a capture of all values into '/dev/shm/parallax-blame\S+', where files are kept in memory .*needs \d+ bytes")

    def test_captures_of_reduce(self):
        self.write_chain("a.textproto", 1)
        self.write_chain("b.textproto", 1.01)
        self.kept("reduce a.textproto --against b.textproto --with cpu -o part", (0,), 160 * MIB)

    def test_reports(self):
        count = 2000
        nodes = node("Neg", "x", "v0") + "".join(node("Abs", f"v{index}", f"v{index + 1}") for index in range(count)) + node("Neg", f"v{count}", "y")
        self.write_model("long.textproto", nodes)
        line = "run long.textproto --with reference,cpu --html report.html"
        messages = self.kept(line, limit=MIB)
        self.assertRegex(messages, r"the report of \d+ values \(--only GLOB reports fewer\) needs \d+ bytes besides \d+ in use")
        self.assertFalse((self.folder / "report.html").exists())
        self.kept(f"{line} --only v1", (0,), MIB)

    def test_few_bytes_that_become_large_objects(self):
        count = 2_000_000
        strings = field(1, count) + field(2, 8) + field(8, "s") + b"\x32\x00" * count
        numbers = field(1, 16 * MIB) + field(2, 7) + field(8, "n") + field(7, bytes(16 * MIB))  # each in a byte
        attributes = field(4, "Neg") + field(1, "x") + field(2, "y") + b"\x2a\x00" * count
        ends = field(2, "g") + field(11, value_info("x", (2,))) + field(12, value_info("y", (2,)))
        neg = field(1, proto_node("Neg", "x", "y"))
        for name, graph, what in (("strings.onnx", neg + field(5, strings), "'strings.onnx': its structure needs"),
                                  ("numbers.onnx", neg + field(5, numbers), "'numbers.onnx' needs"),
                                  ("attributes.onnx", field(1, attributes), "'attributes.onnx': its structure needs")):
            self.write_binary(name, graph + ends)
            for executor in ("reference", "cpu"):
                self.assertIn(what, self.kept(f"run {name} --with {executor}"))

    def test_texts_that_grow(self):
        count = 11
        nodes = "".join(node("StringConcat", f"t{index} t{index}", f"t{index + 1}") for index in range(count)) + node("Neg", "x", "y")
        self.write_model("texts.textproto", nodes, opset=20,
            more=f"initializer {{ name: 't0' data_type: 8 dims: 1 string_data: '{'a' * (MIB // 4)}' }}")
        self.assertIn("its texts needs", self.kept("run texts.textproto --with reference"))

    def test_json_names_the_limit(self):
        self.write_large()
        self.assertIn('"code": 4', re.sub(r'"code":4', '"code": 4', self.kept("run large.textproto --with cpu --json")))


if __name__ == "__main__":
    main()
