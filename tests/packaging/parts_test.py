#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of a package that `cmake --install` puts into a folder: documents, and what a desktop reads.

parts_test.py BUILD_FOLDER SOURCE_FOLDER
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

BUILD, SOURCES = Path(sys.argv[1]), Path(sys.argv[2])
del sys.argv[1:]


def run(*command):
    return subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.share = Path(cls.folder.name) / "share"
        for component in ("documents", "desktop"):
            done = run("cmake", "--install", BUILD, "--prefix", cls.folder.name, "--component", component)
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def need(self, program):
        if shutil.which(program) is None:
            self.skipTest(f"{program} is not installed (samples/install test)")

    def test_documents(self):
        expected = {"man/man1/parallax.1": ".TH PARALLAX 1", "man/man1/parallax-gui.1": ".TH PARALLAX", "zsh/vendor-completions/_parallax": "#compdef",
                    "bash-completion/completions/parallax": "complete ", "fish/vendor_completions.d/parallax.fish": "complete "}
        for name, text in expected.items():
            with self.subTest(name):
                self.assertIn(text, (self.share / name).read_text())

    def test_the_desktop_file_is_valid_and_names_what_is_installed(self):
        self.need("desktop-file-validate")
        file = self.share / "applications/parallax.desktop"
        done = run("desktop-file-validate", file)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        entries = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
        self.assertEqual(entries["Exec"].split()[0], "parallax-gui")
        self.assertTrue((self.share / f"icons/hicolor/scalable/apps/{entries['Icon']}.svg").exists())
        types = re.findall(r'mime-type type="([^"]+)"', (self.share / "mime/packages/parallax.xml").read_text())
        self.assertEqual(entries["MimeType"].rstrip(";").split(";"), types)

    def test_the_icon_is_a_picture(self):
        root = ElementTree.parse(self.share / "icons/hicolor/scalable/apps/parallax.svg").getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(root.get("width"), root.get("height"))

    def test_the_database_knows_dumps_by_name_and_by_content(self):
        self.need("update-mime-database")
        done = run("env", f"XDG_DATA_DIRS={self.share}", "update-mime-database", self.share / "mime")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("application/x-parallax-dump:*.plx", (self.share / "mime/globs").read_text())
        dump = Path(self.folder.name) / "dump"
        made = run(BUILD / "bin/parallax", "run", SOURCES / "samples/cnn/model.onnx", "--with", "cpu", "--dump", dump)
        self.assertEqual(made.returncode, 0, made.stderr)
        begin = next(dump.glob("*.plx")).read_bytes()[:8]
        self.assertIn(b"\n>0=\0\x08" + begin + b"\n", (self.share / "mime/magic").read_bytes())

    def test_programs_begin_their_version_alike(self):
        lines = [run(BUILD / "bin" / program, "--version").stdout.splitlines() for program in ("parallax", "parallax-gui")]
        self.assertRegex(lines[0][0], r"^parallax \d+\.\d+\.\d+$")
        self.assertEqual(lines[1][0], lines[0][0].replace("parallax", "parallax-gui"))
        self.assertEqual(lines[0][1:], lines[1][1:])
        self.assertEqual([line.split(":")[0] for line in lines[0][1:]], ["build", "instruction sets", "features"])
        self.assertIn("parallax-gui", lines[0][3].split(";")[0])


if __name__ == "__main__":
    unittest.main()
