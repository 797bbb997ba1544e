# SPDX-License-Identifier: Apache-2.0
"""The parts of a case's definition: values of every element type, and the list the definitions add to."""
import dataclasses

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

# Element types: name in the case files -> (numpy type, number in TensorProto).
TYPES = {
    "float32": (np.float32, TensorProto.FLOAT), "float64": (np.float64, TensorProto.DOUBLE),
    "float16": (np.float16, TensorProto.FLOAT16), "bfloat16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16),
    "float8e4m3fn": (ml_dtypes.float8_e4m3fn, TensorProto.FLOAT8E4M3FN),
    "float8e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, TensorProto.FLOAT8E4M3FNUZ),
    "float8e5m2": (ml_dtypes.float8_e5m2, TensorProto.FLOAT8E5M2),
    "float8e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, TensorProto.FLOAT8E5M2FNUZ),
    "float8e8m0": (ml_dtypes.float8_e8m0fnu, TensorProto.FLOAT8E8M0),
    "float4e2m1": (ml_dtypes.float4_e2m1fn, TensorProto.FLOAT4E2M1),
    "int64": (np.int64, TensorProto.INT64), "int32": (np.int32, TensorProto.INT32),
    "int16": (np.int16, TensorProto.INT16), "int8": (np.int8, TensorProto.INT8),
    "uint64": (np.uint64, TensorProto.UINT64), "uint32": (np.uint32, TensorProto.UINT32),
    "uint16": (np.uint16, TensorProto.UINT16), "uint8": (np.uint8, TensorProto.UINT8),
    "int4": (ml_dtypes.int4, TensorProto.INT4), "uint4": (ml_dtypes.uint4, TensorProto.UINT4),
    "int2": (ml_dtypes.int2, TensorProto.INT2), "uint2": (ml_dtypes.uint2, TensorProto.UINT2),
    "bool": (np.bool_, TensorProto.BOOL), "string": (np.object_, TensorProto.STRING),
    "complex64": (np.complex64, TensorProto.COMPLEX64), "complex128": (np.complex128, TensorProto.COMPLEX128),
}
NAMES = {np.dtype(numpy): name for name, (numpy, _) in TYPES.items()}
NAN, INF = float("nan"), float("inf")


def tensor(dtype, values, dims=None):
    """Narrow floats must be given as they are: a value that would be rounded here is a mistake."""
    numpy = TYPES[dtype][0]
    if dtype in ("float16", "bfloat16") or dtype.startswith(("float8", "float4")):
        wide = np.array(values, np.float64)
        array = wide.astype(numpy)
        if not np.allclose(array.astype(np.float64), wide, rtol=1e-6, atol=0, equal_nan=True):
            raise ValueError(f"{values} cannot be held by {dtype}")
    else:
        array = np.array(values, numpy)
    return array if dims is None else array.reshape(dims)


def _maker(dtype):
    return lambda values, dims=None: tensor(dtype, values, dims)


f32, f64, f16, bf16 = _maker("float32"), _maker("float64"), _maker("float16"), _maker("bfloat16")
i64, i32, i16, i8 = _maker("int64"), _maker("int32"), _maker("int16"), _maker("int8")
u64, u32, u16, u8 = _maker("uint64"), _maker("uint32"), _maker("uint16"), _maker("uint8")
i4, u4, i2, u2 = _maker("int4"), _maker("uint4"), _maker("int2"), _maker("uint2")
e4m3fn, e4m3fnuz, e5m2, e5m2fnuz = _maker("float8e4m3fn"), _maker("float8e4m3fnuz"), _maker("float8e5m2"), _maker("float8e5m2fnuz")
e8m0, e2m1 = _maker("float8e8m0"), _maker("float4e2m1")
boolean, text = _maker("bool"), _maker("string")
c64, c128 = _maker("complex64"), _maker("complex128")


def numbers(dims, seed, dtype="float32", scale=1.0):
    """Well-spread multiples of 1/16 in about [-3, 3] * scale: exact in every type from half precision on."""
    values = np.random.default_rng(seed).normal(0, 1.2, dims)
    return (np.clip(np.round(values * 16), -48, 48) / 16 * scale).astype(TYPES[dtype][0])


class Seq:
    def __init__(self, items, element=None):
        self.items = list(items)
        self.element = element or type_name(self.items[0], with_dims=False)


class Opt:
    def __init__(self, item, element=None):
        self.item = item
        self.element = element or type_name(item, with_dims=False)


class Map:
    """Keys are integers or strings, values of one element type."""

    def __init__(self, keys, items):
        self.keys, self.items = keys, items


def type_name(value, with_dims=True):
    """As the case files spell types."""
    if isinstance(value, Seq):
        return f"seq({value.element})"
    if isinstance(value, Opt):
        return f"optional({value.element})"
    if isinstance(value, Map):
        return f"map({NAMES[value.keys.dtype]},{type_name(value.items[0], with_dims=False)})"
    name = NAMES[value.dtype]
    return f"{name}[{','.join(map(str, value.shape))}]" if with_dims else name


def type_proto(name):
    """TypeProto of a type's name."""
    for word, make in (("seq", helper.make_sequence_type_proto), ("optional", helper.make_optional_type_proto)):
        if name.startswith(word + "("):
            return make(type_proto(name[len(word) + 1:-1]))
    if name.startswith("map("):
        key, value = name[4:-1].split(",", 1)
        return helper.make_map_type_proto(TYPES[key][1], type_proto(value))
    name, bracket, dims = name.partition("[")
    shape = [int(d) for d in dims[:-1].split(",") if d] if bracket else None
    return helper.make_tensor_type_proto(TYPES[name][1], shape)


def attribute_tensor(array):
    return helper.make_tensor("", TYPES[NAMES[array.dtype]][1], array.shape,
                              [s.encode() for s in array.ravel()] if array.dtype == object else pack(array), raw=array.dtype != object)


def pack(array):
    """The bytes of a tensor as ONNX stores them: elements of fewer than 8 bits are packed, low bits first."""
    name = NAMES[array.dtype]
    bits = {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}.get(name)
    if bits is None:
        return np.ascontiguousarray(array).tobytes()
    raw = array.ravel().view(np.uint8) & ((1 << bits) - 1)
    raw = np.pad(raw, (0, -raw.size % (8 // bits))).reshape(-1, 8 // bits)
    return sum(raw[:, k].astype(np.uint8) << (bits * k) for k in range(8 // bits)).astype(np.uint8).tobytes()


@dataclasses.dataclass
class Case:
    name: str
    model: onnx.ModelProto
    inputs: list              # values of the graph's inputs
    outputs: list | None      # expected, or None: what the peers agree on
    one_node: bool
    spec: str = ""            # where `outputs` come from
    wrong: dict = dataclasses.field(default_factory=dict)  # peer -> what it does wrong
    also: dict = dataclasses.field(default_factory=dict)   # further implementation -> its outputs
    unasked: tuple = ()       # peers that end the process on this case, or know nothing of it
    constant: str = ""
    not_double: str = ""
    slots: tuple = ((), ())   # one_node: which inputs and outputs are given


ALL = {}  # family -> [Case]


def family(name):
    """The function that adds a case of one operator to a family."""
    cases = ALL.setdefault(name, [])

    def case(case_name, op, opset, inputs, attributes=None, outputs=None, count=1, domain="", **more):
        """`count`: number of outputs, or a string such as "1_1": the second is omitted. None among inputs is omitted."""
        given_in = [v is not None for v in inputs]
        given_out = [c == "1" for c in count] if isinstance(count, str) else [True] * (len(outputs) if outputs else count)
        node = helper.make_node(op, [f"in{k}" if given else "" for k, given in enumerate(given_in)],
                                [f"out{k}" if given else "" for k, given in enumerate(given_out)], domain=domain)
        for key, value in (attributes or {}).items():
            if isinstance(value, np.ndarray):
                value = attribute_tensor(value)
            node.attribute.append(value if isinstance(value, onnx.AttributeProto) else helper.make_attribute(key, value))
        values = [v for v in inputs if v is not None]
        graph = helper.make_graph(
            [node], "g", [helper.make_value_info(f"in{k}", type_proto(type_name(v))) for k, v in enumerate(inputs) if v is not None],
            [onnx.ValueInfoProto(name=f"out{k}") for k, given in enumerate(given_out) if given])
        imports = [helper.make_opsetid(domain, opset)] + ([helper.make_opsetid("", 21)] if domain not in ("", "ai.onnx") else [])
        model = helper.make_model(graph, opset_imports=imports, ir_version=11)
        cases.append(Case(case_name, model, values, outputs, True, slots=(given_in, given_out), **more))

    return case


def family_of_models(name):
    """The function that adds a case given as a model in ONNX's text syntax to a family."""
    cases = ALL.setdefault(name, [])

    def model_case(case_name, opset, text_of_graph, inputs, outputs=None, **more):
        """`opset`: a number, or imports by domain. Text after the graph holds functions."""
        imports = opset if isinstance(opset, dict) else {"": opset}
        listing = ", ".join(f'"{domain}" : {version}' for domain, version in imports.items())
        model = onnx.parser.parse_model(f"<ir_version: 11, opset_import: [{listing}]>\n{text_of_graph}")
        cases.append(Case(case_name, model, inputs, outputs, False, **more))

    return model_case
