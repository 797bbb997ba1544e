#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Components by the packages that own files: Debian's, and wheels' as they are in a folder of packages and in a toolkit."""

import json
import shutil
import tempfile
import unittest
import zipfile
from pathlib import Path
from subprocess import run

import bill

LICENSE = "Permission is granted to anyone.\n"


def make_wheel(folder, name, files, metadata="License-Expression: MIT"):
    info = folder / f"{name}-1.2.dist-info"
    (info / "licenses").mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.2\n{metadata}\n\nA text.\n")
    (info / "licenses/LICENSE").write_text(LICENSE)
    (info / "RECORD").write_text("".join(f"{file},sha256=0,1\n" for file in files))
    return info


class Bill(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_wheels_next_to_their_files_and_in_a_toolkit(self):
        packages, toolkit = self.folder / "site-packages", self.folder / "toolkit"
        one = make_wheel(packages, "one", ["one/include/one/a.h"])
        two = make_wheel(toolkit / "dist-info", "two", ["nvidia/cu13/include/sub/b.h"], "License: BSD\n or so")
        for file in (packages / "one/include/one/a.h", toolkit / "include/sub/b.h", packages / "other/c.h"):
            file.parent.mkdir(parents=True)
            file.write_text("")
        wheels = bill.Wheels()
        self.assertEqual(wheels.owner(str(packages / "one/include/one/a.h")), one)
        self.assertEqual(wheels.owner(str(toolkit / "include/sub/b.h")), two)
        self.assertIsNone(wheels.owner(str(packages / "other/c.h")))
        component = bill.wheel_component(two)
        self.assertEqual((component.name, component.version, component.licenses, component.text), ("two", "1.2", ["BSD"], LICENSE))

    def test_licenses_of_a_copyright_file(self):
        text = "Files: *\nLicense: MIT\n\nFiles: x\nLicense: GPL-2+\n more\n\nLicense: MIT\n text\n"
        self.assertEqual(bill.short_licenses(text), ["GPL-2+", "MIT"])
        self.assertEqual(bill.short_licenses("Free."), ["see the copyright file"])

    @unittest.skipUnless(shutil.which("dpkg-query"), "this is no Debian")
    def test_packages_of_debian(self):
        library = bill.original(Path("libgomp-1a2b3c4d.so.1"))
        self.assertEqual(bill.debian_owners([library, str(self.folder)]), {library: "libgomp1:amd64"})
        component = bill.debian_component("libgomp1:amd64")
        self.assertTrue(component.purl.startswith("pkg:deb/debian/libgomp1@") and component.purl.endswith("?arch=amd64"), component.purl)
        component.files["libgomp-1a2b3c4d.so.1"] = "00"
        component.use.add("shipped")
        document = bill.bill([component])
        self.assertEqual(document["dependencies"][0]["dependsOn"], [component.purl])
        self.assertEqual(document["components"][0]["components"][0]["name"], "libgomp-1a2b3c4d.so.1")
        self.assertEqual(json.loads(json.dumps(document)), document)
        self.assertIn(f"\n libgomp1 {component.version}: ", bill.copyright_text([component]))
        self.assertEqual(bill.third_party([component, component]).count(component.text.rstrip()), 1)
        self.assertRaises(SystemExit, bill.original, Path("libof_nobody.so.1"))

    def test_a_wheel_gets_its_bill(self):
        wheel, made = self.folder / "one-1-py3-none-any.whl", self.folder / "made"
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr("one/__init__.py", "")
            file.writestr("one-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr("one-1.dist-info/RECORD", "one/__init__.py,,\none-1.dist-info/WHEEL,,\none-1.dist-info/RECORD,,\n")
        (made / "licenses").mkdir(parents=True)
        (made / "licenses/libother").write_text(LICENSE)
        (made / "bom.cdx.json").write_text("{}\n")
        out = self.folder / "out"
        out.mkdir()
        done = run([Path(bill.__file__).with_name("add_to_wheel.py"), wheel, made, out], check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with zipfile.ZipFile(out / wheel.name) as file:
            names = file.namelist()
            record = file.read("one-1.dist-info/RECORD").decode().splitlines()
        for name in ("sboms/parallax.cdx.json", "licenses/LICENSE", "licenses/NOTICE", "licenses/libother.txt"):
            self.assertIn(f"one-1.dist-info/{name}", names)
        self.assertEqual(sorted(line.split(",")[0] for line in record), sorted(names))


if __name__ == "__main__":
    unittest.main()
