#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spoils the backend test cases that export_onnx_cases.py wrote, and runs them: the program must answer each with a result or an
error, and never end by a signal.

    mutate_onnx_cases.py --parallax build/release/bin/parallax --with reference --cases onnx_cases/node -o spoilt --rounds 3

Element types are changed within the operator's constraints, dimensions set to 0, added or taken away, elements set to the ends of
their range, attributes set to anything, optional inputs left out. The same seed spoils the same way.
"""
import argparse
import pathlib
import random
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 3e38, -3e38, 1e300, float("nan"), float("inf"), float("-inf")]
INTEGERS = [0, 1, -1, 2, 3, 7, 8, 31, 32, 63, 64, 127, 128, -128, 255, 1 << 31, -(1 << 31), (1 << 62), -(1 << 63), (1 << 63) - 1]
TEXTS = ["", "a", "constant", "linear", "cubic", "nearest", "SAME_UPPER", "VALID", "reverse", "bidirectional", "ij,jk->ik", "add", "max",
         "none", "RIGHT", "reflect", "(", "\u00e9"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallax", required=True, type=pathlib.Path)
    parser.add_argument("--with", dest="executor", default="reference")
    parser.add_argument("--cases", required=True, type=pathlib.Path)
    parser.add_argument("-o", "--out", required=True, type=pathlib.Path, help="folder to write; it is replaced")
    parser.add_argument("--rounds", type=int, default=1, help="spoilt cases made of each case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=20, help="seconds a call may take; sizes may be spoilt to billions")
    return parser.parse_args()


def convert(array, type_text):
    """The array as tensor(<name>), or None where numpy cannot make one."""
    name = type_text.removeprefix("tensor(").removesuffix(")")
    if name == "string":
        return np.array([str(element) for element in array.reshape(-1)], dtype=object).reshape(array.shape)
    names = {"float": "float32", "double": "float64"}
    dtype = getattr(ml_dtypes, name, None) if hasattr(ml_dtypes, name) else getattr(np, names.get(name, name), None)
    if name == "bool":
        dtype = np.bool_
    if dtype is None or array.dtype == object:
        return None
    try:
        return array.astype(dtype)
    except TypeError:  # a pair of types that ml_dtypes does not convert
        return None


class Spoiler:
    def __init__(self, model, arrays, chance):
        self.model, self.arrays, self.chance = model, arrays, chance
        self.node = model.graph.node[0]
        version = next(entry.version for entry in model.opset_import if entry.domain == self.node.domain)
        self.schema = defs.get_schema(self.node.op_type, version, self.node.domain)

    def parameter(self, index):
        return self.schema.inputs[min(index, len(self.schema.inputs) - 1)]

    def change_type(self):
        index = self.chance.randrange(len(self.arrays))
        type_name = self.parameter(index).type_str
        allowed = [entry.allowed_type_strs for entry in self.schema.type_constraints if entry.type_param_str == type_name]
        tensors = [text for text in allowed[0] if text.startswith("tensor(")] if allowed else []
        if not tensors:
            return
        wanted = self.chance.choice(tensors)
        for other in range(len(self.arrays)):
            if self.parameter(other).type_str == type_name and self.arrays[other] is not None:
                changed = convert(self.arrays[other], wanted)
                if changed is not None:
                    self.arrays[other] = changed

    def change_shape(self):
        index = self.chance.randrange(len(self.arrays))
        array = self.arrays[index]
        if array is None:
            return
        shape = list(array.shape)
        if shape and self.chance.random() < 0.7:
            axis = self.chance.randrange(len(shape))
            shape[axis] = self.chance.choice([0, 1, 2, shape[axis] + 1])
        elif shape and self.chance.random() < 0.5:
            shape.pop()
        else:
            shape.append(self.chance.choice([1, 2]))
        count = int(np.prod(shape))
        flat = array.flatten()
        self.arrays[index] = np.resize(flat, count).reshape(shape) if flat.size else np.full(shape, "" if array.dtype == object else 0, array.dtype)

    def change_elements(self):
        array = self.chance.choice(self.arrays)
        if array is None or array.size == 0 or array.dtype == np.bool_:
            return
        flat = array.reshape(-1)
        index = self.chance.randrange(array.size)
        with np.errstate(all="ignore"):
            if array.dtype == object:
                flat[index] = self.chance.choice(TEXTS)
            elif np.issubdtype(array.dtype, np.integer):
                limits = np.iinfo(array.dtype)
                flat[index] = min(max(self.chance.choice(INTEGERS), limits.min), limits.max)
            elif np.issubdtype(array.dtype, np.complexfloating) or np.issubdtype(array.dtype, np.floating):
                flat[index] = self.chance.choice(FLOATS)

    def change_attribute(self):
        if not self.schema.attributes:
            return
        name, attribute = self.chance.choice(sorted(self.schema.attributes.items()))
        kinds = defs.OpSchema.AttrType
        several = self.chance.randrange(7)
        values = {
            kinds.INT: lambda: self.chance.choice(INTEGERS),
            kinds.FLOAT: lambda: self.chance.choice(FLOATS),
            kinds.STRING: lambda: self.chance.choice(TEXTS),
            kinds.INTS: lambda: [self.chance.choice(INTEGERS) for _ in range(several)],
            kinds.FLOATS: lambda: [self.chance.choice(FLOATS) for _ in range(several)],
            kinds.STRINGS: lambda: [self.chance.choice(TEXTS) for _ in range(several)],
        }
        if attribute.type not in values:
            return
        kept = [entry for entry in self.node.attribute if entry.name != name]
        del self.node.attribute[:]
        self.node.attribute.extend(kept)
        types = {kinds.INTS: onnx.AttributeProto.INTS, kinds.FLOATS: onnx.AttributeProto.FLOATS, kinds.STRINGS: onnx.AttributeProto.STRINGS}
        made = values[attribute.type]()
        made_attribute = helper.make_attribute(name, made, attr_type=types.get(attribute.type)) if made != [] else \
            onnx.AttributeProto(name=name, type=types[attribute.type])
        self.node.attribute.append(made_attribute)

    def leave_out(self):
        index = self.chance.randrange(len(self.arrays))
        if self.parameter(index).option == defs.OpSchema.FormalParameterOption.Optional:
            self.arrays[index] = None

    def spoil(self):
        changes = [self.change_type, self.change_shape, self.change_elements, self.change_attribute, self.leave_out]
        for _ in range(self.chance.randint(1, 3)):
            self.chance.choice(changes)()

    def write(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        names = [name for name in self.node.input if name]
        del self.model.graph.input[:]
        written = 0
        for name, array in zip(names, self.arrays):
            if array is None:
                self.node.input[list(self.node.input).index(name)] = ""
                continue
            tensor = numpy_helper.from_array(array, name)
            self.model.graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, None))
            (data / f"input_{written}.pb").write_bytes(tensor.SerializeToString())
            written += 1
        for output in self.model.graph.output:
            output.ClearField("type")
        (folder / "model.onnx").write_bytes(self.model.SerializeToString())


def read_case(folder):
    """Model and inputs of a case of one node that takes tensors alone; None for others."""
    model = onnx.load(folder / "model.onnx")
    graph = model.graph
    plain = len(graph.node) == 1 and not graph.initializer and all(value.type.HasField("tensor_type") for value in graph.input)
    if not plain or not graph.input or any(attribute.type == onnx.AttributeProto.GRAPH for attribute in graph.node[0].attribute):
        return None
    named = [name for name in graph.node[0].input if name]
    if named != [value.name for value in graph.input] or any(domain.domain not in ("", graph.node[0].domain) for domain in model.opset_import):
        return None
    arrays = []
    for index in range(len(named)):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / "test_data_set_0" / f"input_{index}.pb").read_bytes())
        arrays.append(numpy_helper.to_array(tensor).copy())
    return model, arrays


def run(options, folder, glob=None):
    """How the program ended: 0 to 2 by itself, below 0 by a signal; None where it took too long."""
    command = [str(options.parallax), "test", str(folder), "--with", options.executor, "--json"] + (["-k", glob] if glob else [])
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                              timeout=options.timeout).returncode
    except subprocess.TimeoutExpired:
        return None


def main():
    options = parse()
    if options.out.exists():
        shutil.rmtree(options.out)
    groups = {}
    for folder in sorted(path for path in options.cases.iterdir() if (path / "model.onnx").is_file()):
        case = read_case(folder)
        if case is None:
            continue
        for number in range(options.rounds):
            chance = random.Random(f"{options.seed} {folder.name} {number}")
            model = onnx.ModelProto()
            model.CopyFrom(case[0])
            spoiler = Spoiler(model, [array.copy() for array in case[1]], chance)
            with np.errstate(all="ignore"):
                spoiler.spoil()
            group = options.out / model.graph.node[0].op_type
            spoiler.write(group / f"{folder.name}_{number}")
            groups.setdefault(group, []).append(f"{folder.name}_{number}")
    killed = 0
    for group, names in groups.items():
        if run(options, group) in (0, 1, 2):
            continue
        for name in names:
            code = run(options, group, name)
            if code in (0, 1, 2):
                continue
            killed += code is not None
            outcome = "took too long" if code is None else f"ended with {code}"
            print(f"{outcome}: {options.parallax} test {group} -k {name} --with {options.executor}", flush=True)
    total = sum(len(names) for names in groups.values())
    print(f"{total} spoilt cases of {len(groups)} operators, {killed} ended the program")
    sys.exit(1 if killed or not total else 0)


if __name__ == "__main__":
    main()
