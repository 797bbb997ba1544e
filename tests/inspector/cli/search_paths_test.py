#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs and modules look for libraries in absolute folders, and nowhere that a model could be; they start where
nothing of CUDA is installed; nor do they name the folder of the sources, which would stand in the messages of internal
errors.

search_paths_test.py BUILD_FOLDER SOURCE_FOLDER FILE...
"""

import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, SOURCES = Path(sys.argv[1]), Path(sys.argv[2])
FILES = [Path(name) for name in sys.argv[3:]]
del sys.argv[1:]

DYNAMIC, LOAD = 2, 1  # kinds of program headers
NEEDED, STRTAB, RPATH, RUNPATH = 1, 5, 15, 29  # tags of the dynamic section
OF_CUDA = re.compile("lib(cuda|cublas|cudnn|nv)")


def texts_of(file, wanted):
    """The texts of these tags in a 64-bit ELF file."""
    data = file.read_bytes()
    assert data[:6] == b"\x7fELF\x02\x01", file
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQ", data, offset + index * size) for index in range(count)]
    loads = [header for header in headers if header[0] == LOAD]
    tags = []
    for kind, _, begin, _, _, length in headers:
        if kind == DYNAMIC:
            tags += [struct.unpack_from("<qQ", data, begin + at) for at in range(0, length, 16)]
    tables = [value for tag, value in tags if tag == STRTAB]
    texts = []
    for tag, value in tags:
        if tag in wanted:
            table = next(begin + tables[0] - address for _, _, begin, address, _, length in loads
                         if address <= tables[0] < address + length)
            texts.append(data[table + value:data.index(b"\0", table + value)].decode())
    return texts


def search_paths(file):
    return texts_of(file, (RPATH, RUNPATH))


class SearchPaths(unittest.TestCase):
    def check(self, file):
        for text in search_paths(file):
            for entry in text.split(":"):
                self.assertTrue(entry.startswith("/"), f"{file}: an entry of '{text}' is no absolute folder")
                self.assertNotIn("..", entry, file)

    def test_the_reader_reads(self):
        """A file with an empty entry is found out."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "a.c"
            source.write_text("int main(void) { return 0; }\n")
            for entries, is_refused in (("/usr/lib:", True), ("relative", True), ("/usr/lib", False)):
                made = subprocess.run(["cc", str(source), "-o", f"{folder}/a", f"-Wl,-rpath,{entries}"], capture_output=True)
                if made.returncode != 0:
                    self.skipTest("there is no C compiler named cc")
                self.assertEqual(search_paths(Path(folder) / "a"), [entries])
                if is_refused:
                    self.assertRaises(AssertionError, self.check, Path(folder) / "a")
                else:
                    self.check(Path(folder) / "a")

    def test_what_was_built(self):
        for file in FILES:
            with self.subTest(file.name):
                self.check(file)

    def test_nothing_of_cuda_is_needed(self):
        for file in FILES:
            needed = texts_of(file, (NEEDED,))
            self.assertTrue(any(name.startswith("libc.so") for name in needed), f"{file}: {needed}")
            self.assertEqual([name for name in needed if OF_CUDA.match(name)], [], file)

    def test_no_file_names_the_folder_of_the_sources(self):
        for file in FILES:
            self.assertEqual(file.read_bytes().count(f"{SOURCES.resolve()}/".encode()), 0, file)

    def test_what_is_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={folder}", "-P", str(BUILD / "inspector/cli/cmake_install.cmake")],
                           check=True, capture_output=True)
            self.check(Path(folder) / "bin/parallax")

    def test_libraries_that_are_loaded_late(self):
        """The calls of dlopen: a name alone, which the system looks for, or below a folder that is absolute
        (tests/inspector/base/late_library_test.cpp)."""
        allowed = re.compile(r'"lib[^"/]*"|\w*(\.|->)?name\.c_str\(\)|\(known \+ "/" \+ name\)\.c_str\(\)')
        calls = []
        for folder in ("inspector", "runtime", "gui", "reference"):
            for file in sorted((SOURCES / folder).rglob("*.c*")):
                if file.suffix in (".cpp", ".cu"):
                    calls += [(file, call) for call in re.findall(r"::dlopen\((.*), \w+(?: \| \w+)*\)", file.read_text())]
        self.assertGreaterEqual(len(calls), 4)
        for file, call in calls:
            self.assertRegex(call, rf"^({allowed.pattern})$", file)


if __name__ == "__main__":
    unittest.main()
