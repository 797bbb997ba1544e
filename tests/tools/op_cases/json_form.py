# SPDX-License-Identifier: Apache-2.0
"""Cases as JSON: a line for each value, the shortest number that reads back as the same element."""
import json
import math

import ml_dtypes
import numpy as np
from onnx import AttributeProto, numpy_helper

from .case import TYPES, Map, Opt, Seq, type_name

ELEMENT_NAMES = {number: name for name, (_, number) in TYPES.items()}


def number(value):
    """A Python float as JSON has it."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15 and (value != 0 or math.copysign(1, value) > 0):
        return int(value)
    return value


def short(value, dtype):
    return float(value) if dtype in (np.float64, np.complex128) else float(str(np.float32(value)))


def elements(array):
    dtype = array.dtype
    flat = array.ravel()
    if dtype == object:
        return [str(v) for v in flat]
    if dtype == np.bool_:
        return [bool(v) for v in flat]
    if dtype.kind == "c":
        return [[number(short(v.real, dtype)), number(short(v.imag, dtype))] for v in flat]
    if dtype.kind in "iu" or dtype in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2):
        return [int(v) for v in flat]
    return [number(short(v, dtype)) for v in flat]


def value(v):
    if v is None:
        return None
    if isinstance(v, Seq):
        return {"type": type_name(v), "items": [value(item) for item in v.items]}
    if isinstance(v, Opt):
        return {"type": type_name(v), "items": [] if v.item is None else [value(v.item)]}
    if isinstance(v, Map):
        return {"type": type_name(v), "keys": value(v.keys), "items": [value(np.asarray(item)) for item in v.items]}
    return {"type": type_name(v), "values": elements(v)}


def tensor(proto):
    name = ELEMENT_NAMES[proto.data_type]
    array = numpy_helper.to_array(proto)
    if name == "string":
        array = np.array([s.decode() for s in proto.string_data], object).reshape(array.shape)
    return value(array.view(TYPES[name][0]) if array.dtype != TYPES[name][0] and array.dtype != object else array)


def type_text(proto):
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        name = ELEMENT_NAMES[proto.tensor_type.elem_type]
        if not proto.tensor_type.HasField("shape"):
            return name
        dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in proto.tensor_type.shape.dim]
        return f"{name}[{','.join(dims)}]"
    if kind == "map_type":
        return f"map({ELEMENT_NAMES[proto.map_type.key_type]},{type_text(proto.map_type.value_type)})"
    return f"{'seq' if kind == 'sequence_type' else 'optional'}({type_text(getattr(proto, kind).elem_type)})"


def float_attribute(f):
    v = float(str(np.float32(f)))
    return {"float": number(v)} if math.isnan(v) or math.isinf(v) else v


def attribute(a):
    if a.ref_attr_name:
        return {"ref": a.ref_attr_name, "type": AttributeProto.AttributeType.Name(a.type)}
    kind = AttributeProto.AttributeType.Name(a.type)
    if kind == "FLOAT":
        return float_attribute(a.f)
    if kind == "FLOATS":
        floats = [float(str(np.float32(f))) for f in a.floats]
        return floats if floats and all(math.isfinite(f) for f in floats) else {"floats": [number(f) for f in floats]}
    if kind == "INT":
        return a.i
    if kind == "INTS":
        return list(a.ints) or {"ints": []}
    if kind == "STRING":
        return a.s.decode()
    if kind == "STRINGS":
        return [s.decode() for s in a.strings] or {"strings": []}
    if kind == "TENSOR":
        return tensor(a.t)
    if kind == "GRAPH":
        return {"graph": graph(a.g, typed=True)}
    if kind == "TYPE_PROTO":
        return {"type_proto": type_text(a.tp)}
    if kind == "SPARSE_TENSOR":
        s = a.sparse_tensor
        return {"sparse_tensor": {"dims": list(s.dims), "values": tensor(s.values), "indices": tensor(s.indices)}}
    raise ValueError(f"attribute {a.name} of kind {kind}")


def node(n):
    document = {"op": n.op_type}
    if n.domain:
        document["domain"] = n.domain
    document["inputs"] = [name or None for name in n.input]
    document["outputs"] = [name or None for name in n.output]
    if n.attribute:
        document["attributes"] = {a.name: attribute(a) for a in n.attribute}
    return document


def listing(infos, typed):
    if not typed:
        return [i.name for i in infos]
    return {i.name: type_text(i.type) if i.HasField("type") and i.type.WhichOneof("value") else "?" for i in infos}


def graph(g, typed):
    document = {"inputs": listing(g.input, typed), "outputs": listing(g.output, typed)}
    if g.initializer:
        document["initializers"] = {t.name: tensor(t) for t in g.initializer}
    document["nodes"] = [node(n) for n in g.node]
    return document


def function(f):
    document = {"name": f.name, "domain": f.domain, "opset": {o.domain: o.version for o in f.opset_import},
                "inputs": list(f.input), "outputs": list(f.output)}
    attributes = {name: None for name in f.attribute} | {a.name: attribute(a) for a in f.attribute_proto}
    if attributes:
        document["attributes"] = attributes
    document["nodes"] = [node(n) for n in f.node]
    return document


def slots(given, values):
    remaining = iter(values)
    return [value(next(remaining)) if is_given else None for is_given in given]


def case(c, outputs, source):
    """The lines of one case."""
    imports = {o.domain: o.version for o in c.model.opset_import}
    head = {"name": c.name}
    body = {}
    if c.one_node:
        n = c.model.graph.node[0]
        head["op"] = n.op_type
        if n.domain:
            head["domain"] = n.domain
        head["opset"] = imports[""] if list(imports) == [""] else imports
        if n.attribute:
            body["attributes"] = {a.name: attribute(a) for a in n.attribute}
        inputs, results = slots(c.slots[0], c.inputs), slots(c.slots[1], outputs)
    else:
        head["opset"] = imports[""] if list(imports) == [""] else imports
        body["graph"] = graph(c.model.graph, typed=False)
        if c.model.functions:
            body["functions"] = [function(f) for f in c.model.functions]
        inputs, results = [value(v) for v in c.inputs], [value(v) for v in outputs]
    head["from"] = source
    for key in ("constant", "not_double"):
        if getattr(c, key):
            head[key] = getattr(c, key)
    lines = [" " + compact(head)[1:-1]] + [f" {compact(key)}: {compact(v)}" for key, v in body.items()]
    for key, values in (("inputs", inputs), ("outputs", results)):
        lines.append(f' "{key}": [' + ",\n  ".join(compact(v) for v in values) + "]")
    return "{" + ",\n".join(lines)[1:] + "}"


def compact(document):
    return json.dumps(document, ensure_ascii=True, allow_nan=False)
