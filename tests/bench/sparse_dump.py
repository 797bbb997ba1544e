#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sparse_dump.py FILE [GIBIBYTES]: a finished dump of that size (10) whose payloads are holes, by inspector/dump/FORMAT.md.

It takes next to no room on the disk: what opening a large dump costs can be measured anywhere.
"""
import struct
import sys

PAYLOAD = 20 << 20
STREAM = 0x5EED
FLOAT32 = 1


def crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = crc_table()


def raw_crc(data, state):
    for byte in data:
        state = TABLE[(state ^ byte) & 255] ^ state >> 8
    return state


def crc32c(data):
    return raw_crc(data, 0xFFFFFFFF) ^ 0xFFFFFFFF


def crc_of_zeros(count):
    """The state after a zero byte is linear in the state before: a matrix, raised to a power by squaring."""
    matrix = [raw_crc(b"\0", 1 << bit) for bit in range(32)]

    def times(rows, vector):
        result = 0
        for bit in range(32):
            if vector >> bit & 1:
                result ^= rows[bit]
        return result

    state = 0xFFFFFFFF
    while count:
        if count & 1:
            state = times(matrix, state)
        matrix = [times(matrix, row) for row in matrix]
        count >>= 1
    return state ^ 0xFFFFFFFF


def padded(data, step):
    return data + b"\0" * (-len(data) % step)


def field(tag, content):
    return padded(struct.pack("<HHI", tag, 0, len(content)) + content, 8)


class Writer:
    def __init__(self, file):
        self.file = file
        self.file.write(b"\x89PLX\r\n\x1a\n" + struct.pack("<I", 1) + b"\0" * 52)
        self.offset = 64
        self.records = []

    def record(self, kind, body, payload_bytes, payload=None, payload_crc=0):
        """With `payload` its bytes are written, else a hole is left."""
        payload_at = 64 + -(-len(body) // 64) * 64
        size = payload_at + -(-payload_bytes // 64) * 64
        number = len(self.records) + 1
        head = struct.pack("<HHQQIIQ", kind, 0, number, size, len(body), STREAM, payload_bytes)
        head_crc = crc32c(head + body)
        seal = struct.pack("<QI", 0, payload_crc)
        check = crc32c(struct.pack("<I", head_crc) + seal) | 1
        header = b"PLXR" + head + struct.pack("<II", head_crc, 0) + seal + struct.pack("<I", check)
        assert len(header) == 64
        self.file.seek(self.offset)
        self.file.write(header + body)
        if payload is not None:
            self.file.seek(self.offset + payload_at)
            self.file.write(payload)
        self.records.append((self.offset, header, body))
        self.offset += size
        return number

    def finish(self):
        index = b"".join(padded(struct.pack("<Q", offset) + header + body, 8) for offset, header, body in self.records)
        count, at = len(self.records), self.offset
        self.record(16, b"", len(index), index, crc32c(index))
        size = self.offset + 64 + 64
        footer = struct.pack("<QQQQ", at, self.offset - at, count, size) + b"\0" * 32
        self.footer(footer, size)

    def footer(self, body, size):
        self.record(17, body, 0)
        self.file.truncate(size)
        assert self.offset == size


def tensor(writer, execution, name, crc):
    kind = struct.pack("<BBBBI", 1, FLOAT32, 1, 0, 2)
    kind += b"".join(struct.pack("<qI", size, 0) for size in (1024, PAYLOAD // 4096))
    location = struct.pack("<QQQ", execution, 0, 0)
    text = name.encode()
    body = field(1, location) + field(2, struct.pack("<BBBBi", 2, 4, 0, 0, 0)) + field(3, text) + field(4, text)
    body += field(5, text) + field(6, b"Relu") + field(7, b"") + field(8, kind)
    writer.record(4, body, PAYLOAD, None, crc)


def main():
    path = sys.argv[1]
    total = int(float(sys.argv[2] if len(sys.argv) > 2 else "10") * (1 << 30))
    crc = crc_of_zeros(PAYLOAD)
    with open(path, "wb") as file:
        writer = Writer(file)
        body = b"".join(field(tag, text) for tag, text in ((1, b"reference"), (2, b"none"), (3, struct.pack("<I", 0)),
                                                           (4, b"sparse.onnx"), (5, b""), (6, b"sparse_dump.py")))
        execution = writer.record(1, body, 0)
        for number in range(-(-total // PAYLOAD)):
            tensor(writer, execution, f"value_{number}", crc)
        writer.finish()


if __name__ == "__main__":
    main()
