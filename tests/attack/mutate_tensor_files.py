# SPDX-License-Identifier: Apache-2.0
"""Tensor files that say one thing and hold another: .npy, .npz, .safetensors and the .pb of a test_data_set."""

import io
import json
import struct
import warnings
import zipfile

import attack_paths  # noqa: F401  (finds dumps, wire)
import dumps
import model_tree
import mutate_models
import wire as w

DESCRIPTIONS = ("'<f4'", "'<f8'", "'<f2'", "'|b1'", "'|u1'", "'|i1'", "'<i8'", "'>f4'", "'>i8'", "'<U4'", "'|S4'", "'<c8'",
                "'<c16'", "'|V2'", "'|O'", "'<M8[s]'", "'<f16'", "''", "7", "[('a', '<f4')]", "'<U0'", "'<U999999999'")
DTYPES = ("F32", "F64", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F4", "C64", "", "f32")


def shape(chance):
    return [chance.choice((0, 1, 2, 3, 6, 24, *mutate_models.DIMS)) if chance.random() < 0.4 else chance.choice((2, 3))
            for _ in range(chance.choice((0, 1, 2, 2, 2, 3, 17, 40)))]


def npy(chance):
    dims = [2, 3] if chance.random() < 0.4 else shape(chance)
    text = "(" + "".join(f"{dim}, " for dim in dims) + ")"
    fields = [f"'descr': {chance.choice(DESCRIPTIONS) if chance.random() < 0.5 else repr('<f4')}",
              f"'fortran_order': {chance.choice(('False', 'True', 'False', '0', 'None'))}", f"'shape': {text}"]
    if chance.random() < 0.1:
        fields[chance.randrange(3)] = chance.choice(("'more': 1", "", "'shape': (2,", "'descr': '<f4'"))
    chance.shuffle(fields)
    size = 24 if chance.random() < 0.6 else chance.choice((0, 1, 23, 25, 48, 96, 1000))
    return dumps.npy("{" + ", ".join(fields) + ", }", chance.randbytes(size), chance.choice((b"\x01\x00",) * 4 + (b"\x02\x00", b"\x03\x00")))


def npz(chance):
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")  # names that come twice
        for index in range(chance.choice((0, 1, 1, 2, 3))):
            name = f"x{index}" if chance.random() < 0.5 else chance.choice(mutate_models.HOSTILE_NAMES)
            entry = zipfile.ZipInfo(name.split("\0")[0][:60000] + chance.choice((".npy", ".npy", ".npy", "", ".NPY", "/")))
            entry.compress_type = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
            archive.writestr(entry, npy(chance) if chance.random() < 0.8 else bytes(chance.choice((0, 10, 100_000))))
    content = bytearray(out.getvalue())
    for _ in range(chance.choice((0, 0, 1, 2))):  # sizes and offsets of the directory
        if len(content) > 120:
            at = len(content) - chance.randrange(4, 120)
            content[at:at + 4] = struct.pack("<I", chance.choice(mutate_models.NUMBERS) & 0xFFFFFFFF)
    return bytes(content)


def safetensors(chance):
    header = {}
    for index in range(chance.choice((0, 1, 1, 2, 3))):
        name = f"x{index}" if chance.random() < 0.5 else chance.choice(mutate_models.HOSTILE_NAMES)
        offsets = [24 * index, 24 * index + 24] if chance.random() < 0.6 else [chance.choice(mutate_models.NUMBERS) for _ in range(2)]
        header[name] = {"dtype": chance.choice(DTYPES) if chance.random() < 0.4 else "F32",
                        "shape": [2, 3] if chance.random() < 0.5 else shape(chance), "data_offsets": offsets}
        if chance.random() < 0.1:
            del header[name][chance.choice(list(header[name]))]
    if chance.random() < 0.2:
        header["__metadata__"] = chance.choice(({"a": "b"}, {"a": 1}, [], {"k\x07": "\x1b[31m"}))
    text = json.dumps(header)
    length = chance.choice(mutate_models.NUMBERS) & ((1 << 64) - 1) if chance.random() < 0.1 else None
    return dumps.safetensors(text, chance.randbytes(chance.choice((24, 24, 48, 72, 0, 23, 25))), length)


def pb(chance):
    tensor = model_tree.read_message(w.tensor("x"), "Tensor")
    model = model_tree.Message("Model", [[7, 2, model_tree.Message("Graph", [[5, 2, tensor]])]])
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        chance.choice((mutate_models.element_type, mutate_models.dims, mutate_models.sizes, mutate_models.one_name,
                       mutate_models.external_data, mutate_models.lost_field))(chance, model)
    return tensor.write()


MAKERS = {"npy": npy, "npz": npz, "safetensors": safetensors, "pb": pb}


def mutant(chance, ending):
    content = MAKERS[ending](chance)
    if chance.random() < 0.1:
        return mutate_models.broken_bytes(chance, content)
    return content
