#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds the bill of materials and the licenses of what is in a wheel: to `sboms` (PEP 770) and `licenses` (PEP 639) of its .dist-info.

add_to_wheel.py WHEEL BILL_FOLDER OUT_FOLDER
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path


def main():
    wheel, bill, out = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    sources = Path(__file__).resolve().parents[2]
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(out / wheel.name, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        info = record.rpartition("/")[0]
        added = {f"{info}/sboms/parallax.cdx.json": bill / "bom.cdx.json"}
        added |= {f"{info}/licenses/{name}": sources / name for name in ("LICENSE", "NOTICE")}
        added |= {f"{info}/licenses/{file.name}.txt": file for file in sorted((bill / "licenses").iterdir())}
        lines = old.read(record).decode()
        for entry in old.infolist():
            if entry.filename != record and entry.filename not in added:
                new.writestr(entry, old.read(entry))
        lines = "".join(line for line in lines.splitlines(keepends=True) if line.split(",")[0] not in added)
        for name, file in added.items():
            data = file.read_bytes()
            entry = zipfile.ZipInfo(name, old.getinfo(record).date_time)
            entry.external_attr = 0o100644 << 16
            new.writestr(entry, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines += f"{name},sha256={digest},{len(data)}\n"
        new.writestr(old.getinfo(record), lines)


if __name__ == "__main__":
    main()
