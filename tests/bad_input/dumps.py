# SPDX-License-Identifier: Apache-2.0
"""Malformed dumps and tensor files, made from a good dump that the program itself wrote."""

import io
import random
import struct
import zipfile

from cases import FILE, MODEL, USAGE, Case

# The exit codes of verbs other than `check` for a damaged dump: they read the intact part, or refuse (without its
# magic, as no model).
SURVIVES = (0, 1, MODEL, FILE)


def damaged(good):
    """(name, bytes): every one has a fault that `check` must find."""
    yield "empty", b""
    yield "one byte", good[:1]
    yield "zeros", bytes(len(good))
    yield "noise", random.Random(1).randbytes(len(good))
    yield "header alone", good[:16]
    yield "without the first byte", good[1:]
    yield "another magic", b"X" + good[1:]
    yield "another version", good[:8] + b"\xff\xff\xff\xff" + good[12:]
    yield "a tail of noise", good + random.Random(2).randbytes(1000)
    yield "a byte inserted in the middle", good[:len(good) // 2] + b"\x00" + good[len(good) // 2:]
    yield "a byte missing in the middle", good[:len(good) // 2] + good[len(good) // 2 + 1:]
    yield "the middle zeroed", good[:len(good) // 3] + bytes(len(good) // 3) + good[len(good) // 3 * 2:]
    for step in range(1, 32):
        cut = len(good) * step // 32
        yield f"cut at {cut} of {len(good)}", good[:cut]
    yield "cut by one byte", good[:-1]


def flipped(good):
    """(name, bytes): one bit each, spread over the file. A bit of padding may be free, so that `check` need not see every one."""
    chance = random.Random(3)
    for _ in range(48):
        position, bit = chance.randrange(len(good)), chance.randrange(8)
        content = bytearray(good)
        content[position] ^= 1 << bit
        yield f"bit {bit} of byte {position} flipped", bytes(content)
    for position in range(0, min(len(good), 96), 4):
        yield f"word at {position} all ones", good[:position] + b"\xff" * 4 + good[position + 4:]


def dump_cases(good):
    for name, content in damaged(good):
        yield Case(f"dump/{name}/check", {"bad.plx": content}, ["check", "bad.plx"], (FILE,))
        yield Case(f"dump/{name}/tensor", {"bad.plx": content}, ["tensor", "bad.plx"], SURVIVES)
        yield Case(f"dump/{name}/diff", {"bad.plx": content, "good.plx": good}, ["diff", "good.plx", "bad.plx"], SURVIVES)
    for name, content in flipped(good):
        for verb in (["check", "bad.plx"], ["tensor", "bad.plx"], ["diff", "good.plx", "bad.plx"], ["repair", "bad.plx", "-o", "new.plx"],
                     ["show", "bad.plx"], ["export", "bad.plx", "-o", "out.npz"]):
            yield Case(f"dump/{name}/{verb[0]}", {"bad.plx": content, "good.plx": good}, verb, SURVIVES)


def npy(header, payload, version=b"\x01\x00"):
    text = header.encode() + b"\n"
    size = struct.pack("<H", len(text)) if version[0] == 1 else struct.pack("<I", len(text))
    return b"\x93NUMPY" + version + size + text + payload


def npy_files():
    def header(descr="'<f4'", order="False", shape="(2, 3)"):
        return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"

    good = npy(header(), bytes(24))
    yield "empty", b""
    yield "magic alone", good[:6]
    yield "header cut", good[:30]
    yield "payload cut", good[:-1]
    yield "another magic", b"X" + good[1:]
    yield "version 99", npy(header(), bytes(24), b"\x63\x00")
    yield "header length beyond the end", good[:8] + b"\xff\xff" + good[10:]
    yield "header no dictionary", npy("hello", bytes(24))
    yield "shape missing", npy("{'descr': '<f4', 'fortran_order': False, }", bytes(24))
    yield "shape negative", npy(header(shape="(-2, 3)"), bytes(24))
    yield "shape overflows", npy(header(shape="(4611686018427387904, 4)"), bytes(24))
    yield "shape beyond int64", npy(header(shape="(99999999999999999999999,)"), bytes(24))
    yield "shape a word", npy(header(shape="('two',)"), bytes(24))
    yield "shape nested 10,000 deep", npy(header(shape="(" * 10_000 + ")" * 10_000), bytes(24), b"\x02\x00")
    yield "type of objects", npy(header("'|O'"), bytes(24))
    yield "type unknown", npy(header("'<q9'"), bytes(24))
    yield "type a record", npy(header("[('a', '<f4')]"), bytes(24))


def npz(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def npz_files():
    member = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", bytes(24))
    good = npz({"a.npy": member, "b.npy": member})
    yield "empty", b""
    yield "no zip", b"no archive" * 20
    yield "cut", good[:len(good) // 2]
    yield "directory cut", good[:-10]
    yield "member that is no .npy", npz({"a.npy": b"hello"})
    yield "member cut", npz({"a.npy": member[:-4]})
    yield "payload against its CRC", good.replace(bytes(24), b"\x01" * 24, 1)


def safetensors(header, payload=bytes(24), length=None):
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + payload


def safetensors_files():
    def entry(kind='"F32"', shape="[2,3]", offsets="[0,24]"):
        return f'{{"a":{{"dtype":{kind},"shape":{shape},"data_offsets":{offsets}}}}}'

    yield "empty", b""
    yield "seven bytes", bytes(7)
    yield "header length of 2^64-1", safetensors(entry(), length=(1 << 64) - 1)
    yield "header length beyond the end", safetensors(entry(), length=10_000)
    yield "header no JSON", safetensors("hello")
    yield "header not UTF-8", safetensors(b"\xff\xfe{}")
    yield "header an array", safetensors("[1,2]")
    yield "header nested 10,000 deep", safetensors("[" * 10_000 + "]" * 10_000)
    yield "entry a number", safetensors('{"a":1}')
    yield "dtype unknown", safetensors(entry('"F33"'))
    yield "dtype a number", safetensors(entry("32"))
    yield "dtype missing", safetensors('{"a":{"shape":[2,3],"data_offsets":[0,24]}}')
    yield "shape negative", safetensors(entry(shape="[-2,3]"))
    yield "shape of fractions", safetensors(entry(shape="[2.5,3]"))
    yield "shape overflows", safetensors(entry(shape="[4611686018427387904,4]"))
    yield "shape against offsets", safetensors(entry(shape="[3,3]"))
    yield "offsets backwards", safetensors(entry(offsets="[24,0]"))
    yield "offsets beyond the end", safetensors(entry(offsets="[8,32]"))
    yield "offsets negative", safetensors(entry(offsets="[-24,0]"))
    yield "offsets of one", safetensors(entry(offsets="[24]"))
    yield "payload cut", safetensors(entry(), bytes(20))


def tensor_file_cases():
    for ending, kind in (("npy", npy_files), ("npz", npz_files), ("safetensors", safetensors_files)):
        for name, content in kind():
            file_name = f"bad.{ending}"
            origin, files = (("folder", {f"folder/{file_name}": content}) if ending == "npy" else (file_name, {file_name: content}))
            yield Case(f"{ending}/{name}/import", files, ["import", origin, "-o", "new.plx"], (MODEL, FILE))
    for name, content in npy_files():
        yield Case(f"npy/{name}/run", {"m.onnx": "MODEL", "bad.npy": content},
                   ["run", "m.onnx", "--with", "reference", "--input", "x=bad.npy"], (USAGE, MODEL, FILE))


def cases(good_dump):
    yield from dump_cases(good_dump)
    yield from tensor_file_cases()
