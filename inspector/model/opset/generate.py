#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the operator tables (*.ops) next to this file from the schemas that the Python packages onnx and
onnxruntime publish. Run it when a newer onnx or onnxruntime is out:

    python3 -m venv build/schemas && build/schemas/bin/pip install onnx onnxruntime
    build/schemas/bin/python inspector/model/opset/generate.py

The line format is described in README.md. Documentation prose is left out on purpose: the tables hold facts only.
"""

import re
from pathlib import Path

import numpy
import onnx
import onnx.defs
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime_state

# Domains in the order of their files. The number is the version of the operator set that the tables describe.
ONNX_DOMAINS = {
    "ai.onnx": onnx.defs.onnx_opset_version(),
    "ai.onnx.ml": 5,
    "ai.onnx.preview": 1,
    "ai.onnx.preview.training": 1,
}
ONNXRUNTIME_DOMAINS = {"com.microsoft": 1}

# onnxruntime's optimizer writes these into the standard domain, where no standard version of them is in force.
EXTENSIONS = [("LayerNormalization", 1), ("SimplifiedLayerNormalization", 1)]

# Sets of element types that many constraints share, smallest first. Later ones may use earlier ones.
NAMED_SETS = {
    "@ieee": "float16 float double",
    "@float": "@ieee bfloat16",
    "@signed": "int8 int16 int32 int64",
    "@unsigned": "uint8 uint16 uint32 uint64",
    "@integer": "@signed @unsigned",
    "@number1": "@ieee @integer",
    "@number": "@float @integer",
    "@complex": "complex64 complex128",
    "@float8": "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz",
    "@all1": "@number1 @complex bool string",
    "@all13": "@number @complex bool string",
    "@all19": "@all13 @float8",
    "@all21": "@all19 int4 uint4",
    "@all23": "@all21 float4e2m1",
    "@all24": "@all23 float8e8m0",
    "@all25": "@all24 int2 uint2",
    "@all28": "@all25 float6e2m3 float6e3m2",
}

ELEMENT_TYPES = (
    "float uint8 int8 uint16 int16 int32 int64 string bool float16 double uint32 uint64 complex64 complex128 bfloat16 "
    "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4 int4 float4e2m1 float8e8m0 uint2 int2 float6e2m3 "
    "float6e3m2"
).split()

FORMS = {
    "": r"tensor\((\w+)\)",
    "sparse": r"sparse_tensor\((\w+)\)",
    "seq": r"seq\(tensor\((\w+)\)\)",
    "optional": r"optional\(tensor\((\w+)\)\)",
    "optional_seq": r"optional\(seq\(tensor\((\w+)\)\)\)",
    "map_int64": r"map\(int64, ?(?:tensor\()?(\w+)\)?\)",
    "map_string": r"map\(string, ?(?:tensor\()?(\w+)\)?\)",
    "seq_map_int64": r"seq\(map\(int64, ?(?:tensor\()?(\w+)\)?\)\)",
    "seq_map_string": r"seq\(map\(string, ?(?:tensor\()?(\w+)\)?\)\)",
}


def expanded_sets():
    """Each named set as the set of its element types."""
    sets = {}
    for name, members in NAMED_SETS.items():
        sets[name] = set()
        for member in members.split():
            sets[name] |= sets[member] if member.startswith("@") else {member}
    return sets


SETS = expanded_sets()


def shortest_union(elements):
    """The element types as named sets, largest first, and what no named set covers."""
    names, left = [], set(elements)
    for name in sorted(SETS, key=lambda name: -len(SETS[name])):
        if SETS[name] <= set(elements) and len(SETS[name] & left) > 1:
            names.append(name)
            left -= SETS[name]
    return names + sorted(left, key=ELEMENT_TYPES.index)


def type_items(type_strings):
    """The types of one constraint as items of the table, grouped by form."""
    by_form = {form: set() for form in FORMS}
    for text in type_strings:
        matches = [(form, re.fullmatch(pattern, text)) for form, pattern in FORMS.items()]
        (form, match), = [(form, match) for form, match in matches if match]
        assert match[1] in ELEMENT_TYPES, text
        by_form[form].add(match[1])
    items = []
    for form, elements in by_form.items():
        names = shortest_union(elements)
        items += [f"{form}({name})" for name in names] if form else names
    return items


def default_text(proto):
    """An attribute's default value, or nothing where it has none."""
    if proto.type == onnx.AttributeProto.UNDEFINED:
        return ""
    value = onnx.helper.get_attribute_value(proto)
    values = value if isinstance(value, list) else [value]
    texts = []
    for one in values:
        if isinstance(one, bytes):
            assert re.fullmatch(rb"[^\"\\\s]*", one), one
            texts.append(f'"{one.decode()}"')
        else:
            # numpy prints the shortest decimal that reads back as the same float32.
            texts.append(str(numpy.float32(one)) if isinstance(one, float) else str(one))
    return " = [" + " ".join(texts) + "]" if isinstance(value, list) else " = " + texts[0]


class Parameter:
    """A formal input or output; the two packages spell its fields differently."""

    def __init__(self, published, arity):
        self.name = published.name
        self.type = getattr(published, "type_str", None) or published.typeStr
        self.option = published.option.name
        self.homogeneous = getattr(published, "is_homogeneous", None)
        if self.homogeneous is None:
            self.homogeneous = published.isHomogeneous
        self.min_arity = arity

    def line(self, keyword):
        words = [keyword, self.name, self.type]
        if self.option == "Optional":
            words.append("optional")
        if self.option == "Variadic":
            words.append(f"variadic {self.min_arity}")
            if not self.homogeneous:
                words.append("mixed")
        return "  " + " ".join(words)


def parameters(published, minimum, maximum):
    """The formal parameters, after a check that the published limits follow from them, as the reader assumes."""
    result, least, most = [], 0, 0
    for position, one in enumerate(published):
        parameter = Parameter(one, max(minimum - position, 0))
        result.append(parameter)
        if parameter.option == "Single":
            least = most = position + 1
        most = max(most, position + 1)
        if parameter.option == "Variadic":
            assert position + 1 == len(published)
            least, most = position + parameter.min_arity, 2**31 - 1
    assert (least, most) == (minimum, maximum), (least, most, minimum, maximum)
    return result


def schema_lines(schema, extension):
    """One operator at one since-version."""
    flags = ["deprecated"] if schema.deprecated else []
    if getattr(schema, "has_function", False) or getattr(schema, "has_context_dependent_function", False):
        flags.append("function")
    if extension:
        flags.append("extension")
    yield " ".join(["op", schema.name, str(schema.since_version)] + flags)
    for one in parameters(schema.inputs, schema.min_input, schema.max_input):
        yield one.line("in")
    for one in parameters(schema.outputs, schema.min_output, schema.max_output):
        yield one.line("out")
    for name, attribute in sorted(schema.attributes.items()):
        default = getattr(attribute, "default_value", None)
        if default is None:
            default = onnx.AttributeProto.FromString(attribute._default_value)
        required = " required" if attribute.required else ""
        yield f"  attr {name} {attribute.type.name.lower()}{required}{default_text(default)}"
    for constraint in schema.type_constraints:
        yield f"  type {constraint.type_param_str} = {' '.join(type_items(constraint.allowed_type_strs))}"


def write_table(domain, latest, source, schemas):
    """One domain's file; schemas are (schema, extension) pairs."""
    schemas = sorted(schemas, key=lambda pair: (pair[0].name, pair[0].since_version))
    lines = [f"# Operators of {domain}, from {source}. Written by generate.py; the format is in README.md.",
             f"domain {domain} {latest}", ""]
    body = [line for schema, extension in schemas for line in schema_lines(schema, extension)]
    text = "\n".join(body)
    wanted = {name for name in SETS if re.search(re.escape(name) + r"\b", text)}
    for name in reversed(NAMED_SETS):
        if name in wanted:
            wanted |= {member for member in NAMED_SETS[name].split() if member.startswith("@")}
    lines += [f"set {name} = {members}" for name, members in NAMED_SETS.items() if name in wanted]
    for line in body:
        lines += ["", line] if line.startswith("op ") else [line]
    path = Path(__file__).parent / f"{domain}.ops"
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    print(f"{path.name}: {len(schemas)} schemas, {path.stat().st_size} bytes")


def main():
    published = onnx.defs.get_all_schemas_with_history()
    contributed = onnxruntime_state.get_all_operator_schema()
    for domain, latest in ONNX_DOMAINS.items():
        schemas = [(one, False) for one in published if (one.domain or "ai.onnx") == domain]
        source = f"onnx {onnx.__version__}"
        if domain == "ai.onnx":
            extensions = [one for one in contributed if not one.domain and (one.name, one.since_version) in EXTENSIONS]
            schemas += [(one, True) for one in extensions]
            source += f" and, marked extension, onnxruntime {onnxruntime.__version__}"
        assert latest >= max(one.since_version for one, _ in schemas)
        write_table(domain, latest, source, schemas)
    for domain, latest in ONNXRUNTIME_DOMAINS.items():
        schemas = [(one, False) for one in contributed if one.domain == domain]
        write_table(domain, latest, f"onnxruntime {onnxruntime.__version__}", schemas)
    unknown = {one.domain for one in published} - set(ONNX_DOMAINS) - {""}
    assert not unknown, unknown


if __name__ == "__main__":
    main()
