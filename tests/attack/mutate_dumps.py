# SPDX-License-Identifier: Apache-2.0
"""Dumps taken into their records (inspector/dump/FORMAT.md), changed, and written with every checksum right: readers
cannot rely on checksums to keep lying content away from them."""

import struct

import attack_paths  # noqa: F401  (finds sparse_dump)
import model_tree
import mutate_models
from sparse_dump import crc32c, padded

HEADER_BYTES = 64
EXECUTION, GRAPH, CALL, TENSOR, EVENT, INDEX, FOOTER = 1, 2, 3, 4, 5, 16, 17
PLACE, TRAITS, TYPE = 1, 2, 8
TEXT_TAGS = {EXECUTION: (1, 2, 4, 5, 6), GRAPH: (2,), CALL: (2,), TENSOR: (3, 4, 5, 6, 7), EVENT: (3, 4, 5, 6, 7, 17)}
BYTES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 23, 24, 127, 128, 255)
WORDS = (0, 1, 2, 3, 16, 17, 64, 255, 256, 1 << 16, 1 << 28, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
LONG_WORDS = (*WORDS, 1 << 32, 1 << 40, 1 << 56, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 64)


def encode(said, stream, body, payload_content):
    """A record whose header says what `said` does, and whose checksums are right."""
    head = struct.pack("<HHQQIIQ", said["kind"], said["flags"], said["id"], said["record_bytes"], said["body_bytes"],
                       stream, said["payload_bytes"])
    head_crc = crc32c(head + body)
    seal = struct.pack("<QI", said["payload_of"], crc32c(payload_content))
    check = crc32c(struct.pack("<I", head_crc) + seal) | 1
    return (b"PLXR" + head + struct.pack("<II", head_crc, 0) + seal + struct.pack("<I", check) + padded(body, 64)
            + padded(payload_content, 64))


class Record:
    """A record: what its header says, its fields as [tag, content], its payload."""

    def __init__(self, data, offset):
        (_, self.kind, self.flags, self.id, self.record_bytes, self.body_bytes, self.stream, self.payload_bytes, _, _,
         self.payload_of, self.payload_crc, _) = struct.unpack_from("<IHHQQIIQIIQII", data, offset)
        self.raw = data[offset:offset + self.record_bytes]
        body = data[offset + HEADER_BYTES:offset + HEADER_BYTES + self.body_bytes]
        start = offset + HEADER_BYTES + -(-self.body_bytes // 64) * 64
        self.payload = data[start:start + self.payload_bytes]
        self.fields, at = [], 0
        while self.kind < INDEX and at < len(body):
            tag, _, size = struct.unpack_from("<HHI", body, at)
            self.fields.append([tag, body[at + 8:at + 8 + size]])
            at += 8 + -(-size // 8) * 8
        self.changed = False
        self.overrides = {}  # header fields that do not say what is true

    def field(self, tag):
        return next((content for number, content in self.fields if number == tag), b"")

    def write(self):
        if not self.changed:
            return self.raw
        body = b"".join(padded(struct.pack("<HHI", tag, 0, len(content)) + content, 8) for tag, content in self.fields)
        size = HEADER_BYTES + len(padded(body, 64)) + len(padded(self.payload, 64))
        said = {"record_bytes": size, "body_bytes": len(body), "payload_bytes": len(self.payload),
                "id": self.id, "payload_of": self.payload_of, "kind": self.kind, "flags": self.flags, **self.overrides}
        return encode(said, self.stream, body, self.payload)


def read_records(data):
    """The whole records of a dump without its Index and Footer."""
    records, offset = [], HEADER_BYTES
    while offset + HEADER_BYTES <= len(data) and data[offset:offset + 4] == b"PLXR":
        record = Record(data, offset)
        if record.kind in (INDEX, FOOTER) or len(record.raw) < record.record_bytes:
            break
        records.append(record)
        offset += record.record_bytes
    return records


def values(data):
    """{path: payload} of a dump's values, each payload that of the record that holds it."""
    by_id = {record.id: record for record in read_records(data)}
    found = {}
    for record in by_id.values():
        if record.kind != TENSOR:
            continue
        holder = record
        while holder.payload_of and holder.payload_of in by_id:
            holder = by_id[holder.payload_of]
        key = (record.field(PLACE), record.field(3), record.field(TRAITS))
        found[key] = (record.field(TYPE), holder.payload)
    return found


def number_within(chance, content):
    """A number of 1, 4 or 8 bytes, at a multiple of its size, becomes another."""
    width, choices, letter = chance.choice(((1, BYTES, "B"), (4, WORDS, "I"), (8, LONG_WORDS, "Q")))
    if len(content) < width:
        return content
    at = chance.randrange(len(content) // width) * width
    return content[:at] + struct.pack(f"<{letter}", chance.choice(choices)) + content[at + width:]


def field_content(chance, record, records):
    if not record.fields:
        return
    field = chance.choice(record.fields)
    action = chance.randrange(8)
    if field[0] in TEXT_TAGS.get(record.kind, ()) and action < 5:
        field[1] = mutate_models.hostile(chance)
    elif action < 5:
        field[1] = number_within(chance, field[1])
    elif action == 5:
        field[1] = field[1][:chance.randrange(len(field[1]) + 1)]
    elif action == 6:
        field[1] += chance.randbytes(chance.choice((1, 8, 64)))
    else:
        other = chance.choice(records)
        if other.fields:
            field[1] = chance.choice(other.fields)[1]


def field_list(chance, record, _records):
    if not record.fields:
        return
    position = chance.randrange(len(record.fields))
    action = chance.randrange(4)
    if action == 0:
        del record.fields[position]
    elif action == 1:
        record.fields.append(list(record.fields[position]))
    elif action == 2:
        record.fields[position][0] = chance.choice((*range(0, 20), 999, 65535))
    else:
        chance.shuffle(record.fields)


def payload(chance, record, _records):
    if record.kind == GRAPH:
        try:
            record.payload = mutate_models.mutant(chance, record.payload)[0]
            return
        except (ValueError, IndexError):
            pass
    action = chance.randrange(4)
    if action == 0:
        record.payload = record.payload[:chance.randrange(len(record.payload) + 1)]
    elif action == 1:
        record.payload += chance.randbytes(chance.choice((1, 4, 64, 1000)))
    elif action == 2:
        record.payload = number_within(chance, record.payload)
    else:
        record.payload = b""


def header(chance, record, records):
    name = chance.choice(("record_bytes", "body_bytes", "payload_bytes", "id", "payload_of", "kind", "flags"))
    ids = [other.id for other in records]
    choices = {"body_bytes": WORDS, "kind": (*range(0, 20), 65535), "flags": (1, 65535),
               "payload_of": (*ids, *LONG_WORDS), "id": (*ids, *LONG_WORDS)}.get(name, LONG_WORDS)
    record.overrides[name] = chance.choice(choices)


CHANGES = (field_content, field_content, field_content, field_content, field_list, payload, payload, header)


def index_of(records, offsets, chance):
    """Index and Footer; now and then they say what is not so."""
    entries = bytearray()
    for record, offset in zip(records, offsets):
        written = record.write()
        body_bytes = min(struct.unpack_from("<I", written, 24)[0], len(written) - HEADER_BYTES)
        entries += padded(struct.pack("<Q", offset) + written[:HEADER_BYTES + body_bytes], 8)
    count, at = len(records), offsets[-1] + len(records[-1].write()) if records else HEADER_BYTES
    stream = records[0].stream if records else 1
    if chance.random() < 0.2:
        entries = number_within(chance, bytes(entries))
    size = HEADER_BYTES + -(-len(entries) // 64) * 64
    index = {"kind": INDEX, "flags": 0, "id": 1 << 40, "record_bytes": size, "body_bytes": 0,
             "payload_bytes": len(entries), "payload_of": 0}
    said = [at, size, count, at + size + 128]
    if chance.random() < 0.2:
        said[chance.randrange(4)] = chance.choice(LONG_WORDS)
    footer = {**index, "kind": FOOTER, "id": (1 << 40) + 1, "record_bytes": 128, "body_bytes": 64, "payload_bytes": 0}
    return (encode(index, stream, b"", bytes(entries))
            + encode(footer, stream, struct.pack("<QQQQ", *said) + bytes(32), b""))


def mutant(chance, content):
    """A changed dump of `content`, and the names of the changes."""
    records = read_records(content)
    names = []
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        if not records:
            break
        if chance.random() < 0.15:
            action = chance.choice(("lost record", "record twice", "records swapped"))
            position, other = chance.randrange(len(records)), chance.randrange(len(records))
            if action == "lost record":
                del records[position]
            elif action == "record twice":
                records.insert(position, records[other])
            else:
                records[position], records[other] = records[other], records[position]
            names.append(action)
            continue
        record, change = chance.choice(records), chance.choice(CHANGES)
        change(chance, record, records)
        record.changed = True
        names.append(change.__name__)
    out, offsets = bytearray(content[:HEADER_BYTES]), []
    for record in records:
        offsets.append(len(out))
        out += record.write()
    if chance.random() < 0.6:
        out += index_of(records, offsets, chance)
    if chance.random() < 0.05:
        return mutate_models.broken_bytes(chance, bytes(out)), [*names, "broken_bytes"]
    return bytes(out), names


def graphs(content):
    """The models of a dump's graphs as trees."""
    return [model_tree.read_message(record.payload) for record in read_records(content) if record.kind == GRAPH]
