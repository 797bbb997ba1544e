# SPDX-License-Identifier: Apache-2.0
"""Changes to a model that keep its protobuf well-formed: types, dims, names, attributes, edges, bodies, functions,
external data and sizes. A mutant is a valid model more often than not, which is what brings it past the checker."""

import model_tree as t
import seeds

MARKER = "LINE-OF-A-NAME"  # an output line that begins so shows that the newline in front of it was not escaped
HOSTILE_NAMES = (
    f"a\n{MARKER}", "b\x1b[31mred\x1b[0m", "c\x07\x08\x00d", f"e\r{MARKER}", "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", "&amp;\"'><b>", "=1+1", "@SUM(A1)", "+cmd", "-2+3", "a,b;c\td", "]]>", "-->",
    "f//g", "%2F%2F%25", "h.body[3]//i", "**", "?", "\u202eevil", "\u0085next\u009b31m", "\u2028line", "\U0001f600",
    "../../escape", "/etc/passwd", "C:\\x", "con", "n" * 6000, "\u00e9" * 300, "\ufeffbom", " ", "\"", "\\", "{x}",
    "${HOME}", "$(touch owned)", "`touch owned`", "a b", "x#2", "graph(decoder)//y", "step[7]//y", "\x7f")
BAD_TEXT = (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ok\x80")
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 64, 255, 256, 1000, -1, -2, -3, 1 << 16, 1 << 20, (1 << 31) - 1, 1 << 31,
           1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, -(1 << 31), 999)
DIMS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 100, 1000, -1, 1 << 20, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-30, 1e30, 3e38, float("inf"), float("-inf"), float("nan"))
LOCATIONS = ("gone.data", "", ".", "..", "../w.data", "/dev/zero", "/etc/hostname", "w.data\0x", "m.onnx", "W.DATA",
             "sub/../../w.data", "w.data/", "x" * 5000, "/proc/self/mem", "\x1b]0;title\x07")


def messages(model, kind):
    return [message for message in model.walk() if message.kind == kind]


def pick(chance, model, kind):
    found = messages(model, kind)
    return chance.choice(found) if found else t.Message(kind)


def element_type(chance, model):
    """Another element type of a tensor or of a declared type."""
    number = chance.choice((*range(0, 28), 999, -1, 1, 6, 7, 9, 10))
    message = pick(chance, model, chance.choice(("Tensor", "TensorType", "TensorType")))
    message.set(2 if message.kind == "Tensor" else 1, t.VARINT, number)


def dims(chance, model):
    message = pick(chance, model, chance.choice(("Tensor", "Shape", "Shape")))
    values = message.of(1) if message.kind == "Tensor" else [None] * len(message.of(1))
    action = chance.randrange(5)
    if message.kind == "Shape":
        new = t.Message("Dim", [[1, t.VARINT, chance.choice(DIMS)]] if action else [[2, t.BYTES, b"batch"]])
        wire_type, contents = t.BYTES, message.of(1)
    else:
        new, wire_type, contents = chance.choice(DIMS), t.VARINT, values
    where = chance.randrange(len(contents) + 1)
    if action < 3 and contents:
        contents[where % len(contents)] = new
    elif action == 3 and contents:
        del contents[where % len(contents)]
    else:
        contents[where:where] = [new] * chance.choice((1, 1, 1, 2, 20))
    message.set(1, wire_type, *contents)


def all_names(model):
    """Every slot of a text that names something, as (message, position)."""
    return [(message, position) for message in model.walk() for position, field in enumerate(message.fields)
            if field[1] == t.BYTES and message.kind_of(field[0]) == "text"]


def hostile(chance):
    return chance.choice(BAD_TEXT) if chance.random() < 0.05 else chance.choice(HOSTILE_NAMES).encode()


def rename_everywhere(chance, model):
    """The model stays as valid as it was: one name becomes another wherever it stands, often a hostile one."""
    slots = all_names(model)
    if not slots:
        return
    message, position = chance.choice(slots)
    old, new = message.fields[position][2], hostile(chance)
    for other, at in slots:
        if other.fields[at][2] == old and other.kind_of(other.fields[at][0]) == "text" and other.fields[at][0] != t.OP:
            other.fields[at][2] = new


def one_name(chance, model):
    slots = all_names(model)
    if slots:
        message, position = chance.choice(slots)
        other, at = chance.choice(slots)
        message.fields[position][2] = hostile(chance) if chance.random() < 0.4 else other.fields[at][2]


def attribute_value(chance, attribute):
    kind = chance.choice(("same", "same", "same", "i", "f", "s", "ints", "strings", "type"))
    if kind == "type":
        attribute.set(20, t.VARINT, chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 99)))
        return
    if kind == "same":
        slots = [field for field in attribute.fields if field[0] in (2, 3, 4, 7, 8, 9)]
        if not slots:
            return
        field = chance.choice(slots)
        if field[1] == t.VARINT:
            field[2] = chance.choice(NUMBERS)
        elif field[1] == t.FIXED32:
            field[2] = t.float_bytes(chance.choice(FLOATS))
        else:
            field[2] = hostile(chance)
        if field[0] >= 7 and chance.random() < 0.4:
            where = attribute.fields.index(field)
            if chance.random() < 0.5:
                del attribute.fields[where]
            else:
                attribute.fields[where:where] = [list(field)] * chance.choice((1, 1, 3, 40))
        return
    number, type_number = {"i": (3, 2), "f": (2, 1), "s": (4, 3), "ints": (8, 7), "strings": (9, 8)}[kind]
    attribute.fields = [field for field in attribute.fields if field[0] == 1] + [[20, t.VARINT, type_number]]
    for _ in range(1 if kind in "ifs" else chance.randrange(4)):
        content = {3: chance.choice(NUMBERS), 2: t.float_bytes(chance.choice(FLOATS))}.get(number)
        if number == 8:
            content = chance.choice(NUMBERS)
        wire_type = t.FIXED32 if number == 2 else t.VARINT if number in (3, 8) else t.BYTES
        attribute.fields.append([number, wire_type, hostile(chance) if wire_type == t.BYTES else content])


def attribute(chance, model):
    found = messages(model, "Attribute")
    node = pick(chance, model, "Node")
    action = chance.randrange(6)
    if action == 0 and node.positions(t.ATTRIBUTE):
        del node.fields[chance.choice(node.positions(t.ATTRIBUTE))]
    elif action == 1 and found:
        node.fields.append([t.ATTRIBUTE, t.BYTES, chance.choice(found).copy()])
    elif action == 2:
        names = [name for one in found for name in one.of(1)] + [b"axis", b"axes", b"to", b"perm", b"mode", b"pads"]
        node.fields.append([t.ATTRIBUTE, t.BYTES, t.Message("Attribute", [
            [1, t.BYTES, chance.choice(names)], [3, t.VARINT, chance.choice(NUMBERS)], [20, t.VARINT, 2]])])
    elif found:
        attribute_value(chance, chance.choice(found))


def edges(chance, model):
    node = pick(chance, model, "Node")
    number = chance.choice((t.INPUT, t.INPUT, t.INPUT, t.OUTPUT))
    names = list(node.of(number))
    known = [name for one in messages(model, "Node") for name in one.of(t.INPUT) + one.of(t.OUTPUT)] or [b"x"]
    action = chance.randrange(7)
    if action == 0:
        names = []
    elif action == 1 and names:
        del names[chance.randrange(len(names))]
    elif action == 2 and names:
        names[chance.randrange(len(names))] = b""
    elif action == 3 and names:
        names[chance.randrange(len(names))] = chance.choice(known)
    elif action == 4:
        chance.shuffle(names)
    elif action == 5:
        names += [chance.choice(known)] * chance.choice((1, 1, 2, 50))
    else:
        names.append(b"" if chance.random() < 0.5 else b"a_new_name")
    node.set(number, t.BYTES, *names)


def nodes(chance, model):
    graph = chance.choice(messages(model, "Graph") + messages(model, "Function") or [t.Message("Graph")])
    number = 7 if graph.kind == "Function" else 1
    positions = graph.positions(number)
    if not positions:
        return
    position = chance.choice(positions)
    node = graph.fields[position][2]
    action = chance.randrange(6)
    if action == 0:
        del graph.fields[position]
    elif action == 1:
        graph.fields.insert(position, [number, t.BYTES, node.copy()])
    elif action == 2:
        other = chance.choice(positions)
        graph.fields[position], graph.fields[other] = graph.fields[other], graph.fields[position]
    elif action == 3:
        node.set(t.DOMAIN, t.BYTES, chance.choice((b"", b"com.microsoft", b"ai.onnx.ml", b"local", b"ai.onnx")))
    else:
        other = t.read_message(chance.choice(list(seeds.operator_models().values())))
        foreign = chance.choice(messages(other, "Node"))
        node.set(t.OP, t.BYTES, *foreign.of(t.OP))
        if action == 4:
            node.set(t.ATTRIBUTE, t.BYTES, *foreign.of(t.ATTRIBUTE))


def bodies(chance, model):
    """A graph takes another's nodes, loses or doubles an input or output, or goes into itself."""
    graphs = messages(model, "Graph")
    if not graphs:
        return
    graph, other = chance.choice(graphs), chance.choice(graphs)
    holders = [field for message in messages(model, "Attribute") for field in message.fields if field[0] == 6]
    action = chance.randrange(4)
    if action == 0 and holders:
        chance.choice(holders)[2] = other.copy()
    elif action == 1:
        number = chance.choice((5, 11, 12))
        positions = graph.positions(number)
        if positions:
            field = graph.fields[chance.choice(positions)]
            if chance.random() < 0.5:
                graph.fields.remove(field)
            else:
                graph.fields.append([number, t.BYTES, field[2].copy()])
    elif action == 2:
        nested = t.Message("Node", [[t.INPUT, t.BYTES, b"flag"], [t.OUTPUT, t.BYTES, b"a_new_name"],
                                    [t.OP, t.BYTES, b"If"]])
        for name in (b"then_branch", b"else_branch"):
            nested.fields.append([t.ATTRIBUTE, t.BYTES, t.Message("Attribute", [
                [1, t.BYTES, name], [6, t.BYTES, other.copy()], [20, t.VARINT, 5]])])
        graph.fields.insert(0, [1, t.BYTES, nested])
    else:
        graph.set(12, t.BYTES, *[value.copy() for value in other.of(12)])


def functions(chance, model):
    """A function is made of the graph's nodes, called, called by itself, or loses its imports."""
    found = messages(model, "Function")
    if found and chance.random() < 0.5:
        function = chance.choice(found)
        function.set(chance.choice((1, 4, 5, 9, 10)), t.BYTES)
        return
    graph = pick(chance, model, "Graph")
    name = chance.choice([node.of(t.OP)[0] for node in messages(model, "Node") if node.of(t.OP)] or [b"Relu"])
    inner = [[7, t.BYTES, node.copy()] for node in graph.of(1)[:20]]
    model.fields.append([25, t.BYTES, t.Message("Function", [
        [1, t.BYTES, name], [4, t.BYTES, b"x"], [5, t.BYTES, b"y"], *inner,
        [9, t.BYTES, t.Message("Opset", [[1, t.BYTES, b""], [2, t.VARINT, 17]])],
        [10, t.BYTES, chance.choice((b"", b"local"))]])])


def versions(chance, model):
    if chance.random() < 0.3:
        model.set(1, t.VARINT, chance.choice(NUMBERS))
    else:
        pick(chance, model, "Opset").set(2, t.VARINT, chance.choice((*range(1, 27), 0, -1, 999)))


def external_data(chance, model):
    tensor = pick(chance, model, "Tensor")
    if not tensor.of(13):
        tensor.fields = [field for field in tensor.fields if field[0] in (1, 2, 8)]
    entries = {b"location": chance.choice((*LOCATIONS, *["w.data"] * 15)).encode()}
    for key in (b"offset", b"length"):
        if chance.random() < 0.6:
            entries[key] = chance.choice((*map(str, NUMBERS), "24", "0x10", "1e3", " 4", "4 ", "", "four")).encode()
    tensor.set(13, t.BYTES, *[t.Message("Entry", [[1, t.BYTES, key], [2, t.BYTES, content]])
                              for key, content in entries.items()])
    tensor.set(14, t.VARINT, chance.choice((1, 1, 1, 1, 0, 2)))


def sizes(chance, model):
    """The data of a tensor: cut, longer, or other numbers."""
    tensor = pick(chance, model, "Tensor")
    slots = [field for field in tensor.fields if field[0] in (4, 5, 6, 7, 9, 10, 11)]
    if not slots:
        return
    field = chance.choice(slots)
    if field[1] == t.VARINT:
        field[2] = chance.choice(NUMBERS)
    elif field[1] == t.BYTES:
        content, action = field[2], chance.randrange(5)
        if action == 0:
            field[2] = content[:chance.randrange(len(content) + 1)]
        elif action == 1:
            field[2] = content + chance.randbytes(chance.choice((1, 4, 8, 100)))
        elif action == 2 and content:
            field[2] = chance.randbytes(min(len(content), 4096)) + content[4096:]
        elif content:  # one number, in whichever width
            width = chance.choice((1, 4, 8))
            where = chance.randrange(max(1, len(content) // width)) * width
            number = (chance.choice(NUMBERS) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
            field[2] = (content[:where] + number + content[where + width:])[:len(content)]
    else:
        field[2] = t.float_bytes(chance.choice(FLOATS))


def lost_field(chance, model):
    message = chance.choice([message for message in model.walk() if message.fields] or [model])
    if message.fields:
        del message.fields[chance.randrange(len(message.fields))]


CHANGES = (element_type, dims, dims, rename_everywhere, rename_everywhere, one_name, attribute, attribute, edges, edges,
           nodes, bodies, functions, versions, external_data, sizes, sizes, lost_field)


def broken_bytes(chance, content):
    """A few bytes of the file changed, or the file cut."""
    content = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        if content:
            content[chance.randrange(len(content))] = chance.randrange(256)
    return bytes(content[:chance.randrange(len(content) + 1)] if chance.random() < 0.3 else content)


def mutant(chance, content):
    """A changed model of `content`, and the names of the changes."""
    model = t.read_message(content)
    names = []
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        change = chance.choice(CHANGES)
        change(chance, model)
        names.append(change.__name__)
    written = model.write()
    if chance.random() < 0.03:
        return broken_bytes(chance, written), [*names, "broken_bytes"]
    return written, names
