# SPDX-License-Identifier: Apache-2.0
"""ONNX models as trees of protobuf messages: read from bytes by the published field numbers, changed, and written again.

What a message holds is kept in its order, unknown fields too, so that a tree that nobody changed is written as it was
read (packed numbers come back one by one, which means the same).
"""

import struct

import attack_paths  # noqa: F401  (finds wire)
import wire as w

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

# Message -> field -> what it holds: a message's name, or int, text, bytes, float.
SCHEMA = {
    "Model": {1: "int", 2: "text", 3: "text", 4: "text", 5: "int", 6: "text", 7: "Graph", 8: "Opset", 14: "Entry",
              25: "Function"},
    "Opset": {1: "text", 2: "int"},
    "Entry": {1: "text", 2: "text"},
    "Graph": {1: "Node", 2: "text", 5: "Tensor", 10: "text", 11: "Value", 12: "Value", 13: "Value", 15: "Sparse",
              16: "Entry"},
    "Function": {1: "text", 4: "text", 5: "text", 6: "text", 7: "Node", 8: "text", 9: "Opset", 10: "text",
                 11: "Attribute", 12: "Value", 14: "Entry"},
    "Node": {1: "text", 2: "text", 3: "text", 4: "text", 5: "Attribute", 6: "text", 7: "text", 8: "text", 9: "Entry"},
    "Attribute": {1: "text", 2: "float", 3: "int", 4: "bytes", 5: "Tensor", 6: "Graph", 7: "float", 8: "int",
                  9: "bytes", 10: "Tensor", 11: "Graph", 13: "text", 14: "Type", 20: "int", 21: "text", 22: "Sparse"},
    "Tensor": {1: "int", 2: "int", 4: "bytes", 5: "int", 6: "bytes", 7: "int", 8: "text", 9: "bytes", 10: "bytes",
               11: "int", 12: "text", 13: "Entry", 14: "int", 16: "Entry"},
    "Sparse": {1: "Tensor", 2: "Tensor", 3: "int"},
    "Value": {1: "text", 2: "Type", 3: "text", 4: "Entry"},
    "Type": {1: "TensorType", 4: "ElementType", 5: "MapType", 6: "text", 8: "TensorType", 9: "ElementType"},
    "TensorType": {1: "int", 2: "Shape"},
    "ElementType": {1: "Type"},
    "MapType": {1: "int", 2: "Type"},
    "Shape": {1: "Dim"},
    "Dim": {1: "int", 2: "text", 3: "text"},
}
INPUT, OUTPUT, NODE_NAME, OP, ATTRIBUTE, DOMAIN = 1, 2, 3, 4, 5, 7  # fields of a node


class Message:
    """A message: its kind, and its fields in order as [number, wire type, content]."""

    def __init__(self, kind, fields=None):
        self.kind = kind
        self.fields = fields if fields is not None else []

    def kind_of(self, number):
        return SCHEMA[self.kind].get(number, "bytes")

    def of(self, number):
        """The contents of a field, in order."""
        return [content for field, _, content in self.fields if field == number]

    def positions(self, number):
        return [position for position, field in enumerate(self.fields) if field[0] == number]

    def set(self, number, wire_type, *contents):
        """Replaces the contents of a field, whose first occurrence says where they stand."""
        first = min(self.positions(number), default=len(self.fields))
        kept = [field for field in self.fields if field[0] != number]
        self.fields = kept[:first] + [[number, wire_type, content] for content in contents] + kept[first:]

    def walk(self):
        """This message and all below it."""
        yield self
        for _, _, content in self.fields:
            if isinstance(content, Message):
                yield from content.walk()

    def copy(self):
        return Message(self.kind, [[number, wire_type, content.copy() if isinstance(content, Message) else content]
                                   for number, wire_type, content in self.fields])

    def write(self):
        out = bytearray()
        for number, wire_type, content in self.fields:
            if wire_type == VARINT:
                out += w.number(number, content)
            elif wire_type == BYTES:
                out += w.data(number, content.write() if isinstance(content, Message) else content)
            else:
                out += w.varint(number << 3 | wire_type) + content
        return bytes(out)


def read_varint(data, offset):
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7


def read_message(data, kind="Model"):
    """The tree of a message that is well-formed; ValueError or IndexError of one that is not."""
    message, offset = Message(kind), 0
    while offset < len(data):
        key, offset = read_varint(data, offset)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            content, offset = read_varint(data, offset)
        elif wire_type in (FIXED32, FIXED64):
            size = 4 if wire_type == FIXED32 else 8
            content, offset = data[offset:offset + size], offset + size
        elif wire_type == BYTES:
            size, offset = read_varint(data, offset)
            content, offset = data[offset:offset + size], offset + size
            holds = message.kind_of(number)
            if holds in SCHEMA:
                content = read_message(content, holds)
            elif holds == "int":  # packed
                at = 0
                while at < len(content):
                    value, at = read_varint(content, at)
                    message.fields.append([number, VARINT, value])
                continue
            elif holds == "float":
                message.fields += [[number, FIXED32, content[at:at + 4]] for at in range(0, len(content), 4)]
                continue
        else:
            raise ValueError(f"wire type {wire_type}")
        message.fields.append([number, wire_type, content])
    return message


def float_bytes(value):
    return struct.pack("<f", value)
