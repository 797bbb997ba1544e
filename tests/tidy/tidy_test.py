# SPDX-License-Identifier: Apache-2.0
"""Plants one violation of each kind into a small clean tree and asks that the tidy check names it, at its line."""

import contextlib
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import functions
import table
import tidy

LICENSE = f"// {table.LICENSE}\n"
FIRST = LICENSE + "// A comment long enough.\n"
SCRIPT = f"# {table.LICENSE}\n"
HEADER = LICENSE + "// A header of the clean tree, good in every respect.\n#pragma once\n"
CLEAN = {
    "CMakeLists.txt": "project(clean)\n",
    "inspector/README.md": "# inspector\n",
    "inspector/base/README.md": "# base\n",
    "inspector/base/result.h": HEADER + "#include <string>\n\n#include <sys/mman.h>\n",
    "inspector/diff/README.md": "# diff\n",
    "inspector/diff/diff.cpp": LICENSE + "// Uses what lies below it in the table, some of it far below.\n#include \"inspector/base/result.h\"\n"
                               "#include <fmt/format.h>\n// #include \"gui/app/none.h\" in a comment counts for nothing\n",
    "runtime/README.md": "# runtime\n",
    "runtime/plan/README.md": "# plan\n",
    "runtime/plan/plan.h": HEADER,
    "samples/README.md": "# samples\n" * 200,
    "samples/make": "#!/bin/sh\n" + SCRIPT + "# makes the samples, all of them\ntrue\n",
    "tests/README.md": "# tests\n",
    "tests/check.py": SCRIPT + '"""Checks something worth checking."""\n',
}
LONG_BODY = "  call();\n" * 70


def planted(path, text, exempt=()):
    """The problems of the clean tree with one file put into it; `exempt` are the paths that may be long."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(table, "LONG_FILES", dict.fromkeys(exempt, "a reason")))
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name, content in {**CLEAN, path: text}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        return [(problem.path, problem.line, problem.rule) for problem in tidy.check(root)]


class Tidy(unittest.TestCase):
    def assert_found(self, path, text, line, rule):
        self.assertEqual(planted(path, text), [(path, line, rule)])

    def test_clean_tree_has_no_problem(self):
        self.assertEqual(planted("tests/README.md", "# tests\n"), [])

    def test_include_against_the_direction(self):
        self.assert_found("inspector/base/bad.h", HEADER + '#include "inspector/diff/diff.cpp"\n', 4, "include")

    def test_include_of_a_sibling_branch(self):
        self.assert_found("inspector/diff/bad.cpp", FIRST + '\n#include "runtime/plan/plan.h"\n', 4, "include")

    def test_include_not_from_the_root(self):
        self.assert_found("inspector/base/bad.cpp", FIRST + '#include "result.h"\n', 3, "include")

    def test_include_of_a_missing_file(self):
        self.assert_found("inspector/base/bad.cpp", FIRST + '#include "inspector/base/gone.h"\n', 3, "include")

    def test_protobuf_outside_its_folder(self):
        self.assert_found("inspector/diff/bad.cpp", FIRST + '#include "inspector/model/onnx.pb.h"\n', 3, "include")

    def test_absent_standard_header(self):
        self.assert_found("inspector/base/bad.cpp", FIRST + "#include <format>\n", 3, "include")

    def test_library_outside_its_folder(self):
        self.assert_found("inspector/diff/bad.cpp", FIRST + "#include <CLI/CLI.hpp>\n", 3, "library")

    def test_unknown_library(self):
        self.assert_found("inspector/diff/bad.cpp", FIRST + "#include <boost/any.hpp>\n", 3, "library")

    def test_include_directive_after_spaces(self):
        self.assert_found("inspector/base/bad.h", HEADER + '#  include   "inspector/diff/diff.cpp"\n', 4, "include")

    def test_long_file(self):
        text = FIRST + "" + "int x;\n" * table.FILE_LINES
        self.assert_found("inspector/base/bad.cpp", text, table.FILE_LINES, "file length")

    def test_exempt_file_may_be_long_and_must_be_there(self):
        text = FIRST + "int x;\n" * table.FILE_LINES
        self.assertEqual(planted("inspector/base/long.cpp", text, ["inspector/base/long.cpp"]), [])
        self.assertEqual(planted("inspector/base/long.cpp", FIRST, ["inspector/base/gone.cpp"]),
                         [("tests/tidy/table.py", 1, "exemption")])

    def test_long_readme(self):
        self.assert_found("inspector/base/README.md", "word\n" * (table.README_LINES + 1), table.README_LINES, "file length")

    def test_wide_line_of_prose(self):
        wide = "word " * 24 + "ends"
        self.assert_found("inspector/base/README.md", f"# base\n\n{wide}\n", 3, "line width")
        self.assert_found("inspector/base/GUIDE.md", f"- {wide}\n", 1, "line width")
        self.assertEqual(planted("inspector/base/README.md", f"# base\n\n| {wide} |\n\n```\n{wide}\n```\n"), [])

    def test_path_of_a_document_that_leads_nowhere(self):
        self.assert_found("inspector/base/README.md", "# base\n\nsee `inspector/base/gone.h`\n", 3, "path")
        self.assert_found("inspector/base/README.md", "# base\n\n| `runtime/gone/` | a folder |\n", 3, "path")
        self.assertEqual(planted("inspector/base/README.md", "# `inspector/base/result`, `runtime/plan/`, `out/a.plx`\n"), [])

    def test_long_function(self):
        self.assert_found("inspector/base/bad.cpp", FIRST + "\nint f() {\n" + LONG_BODY + "}\n", 4, "function length")

    def test_long_python_function(self):
        text = SCRIPT + '"""A sentence of purpose."""\n\ndef f():\n' + "    f()\n" * 70
        self.assert_found("tests/bad.py", text, 4, "function length")

    def test_banned_words(self):
        for word in ("TO" "DO", "FIX" "ME", "not imple" "mented", "for" " now", "/tm" "p/x", "place" "holder"):
            with self.subTest(word):
                self.assert_found("inspector/base/bad.cpp", FIRST + f"// {word}\n", 3, "words")

    def test_missing_first_comment(self):
        self.assert_found("inspector/base/bad.h", "#pragma once\n", 1, "first comment")
        self.assert_found("tests/bad.py", SCRIPT + "import os\n", 1, "first comment")
        self.assert_found("tests/bad.py", '"""A sentence of purpose."""\n', 1, "license")
        self.assert_found("samples/bad", "#!/bin/sh\ntrue\n", 2, "first comment")

    def test_missing_pragma_once(self):
        self.assert_found("inspector/base/bad.h", FIRST, 1, "pragma once")

    def test_one_type_name_in_two_files(self):
        first, second = (HEADER + f"namespace parallax {{\n{kind} Twin {{}};\n}}\n" for kind in ("struct", "class"))
        with mock.patch.dict(CLEAN, {"inspector/diff/a.h": first}):
            self.assert_found("inspector/diff/b.h", second, 5, "one definition")
            for allowed in (second.replace("parallax", ""), second.replace("Twin {}", "Twin"), second.replace("parallax", "parallax::dump")):
                self.assertEqual(planted("inspector/diff/b.h", allowed), [])

    def test_unknown_top_level(self):
        self.assertIn(("docs", 1, "top level"), planted("docs/README.md", "# docs\n"))

    def test_missing_readme(self):
        self.assertEqual(planted("inspector/tensor/shape.h", HEADER), [("inspector/tensor", 1, "readme")])

    def test_every_row_reaches_base_and_no_row_reaches_a_composition_root(self):
        for row, reached in tidy.ALLOWED.items():
            if not row.startswith("inspector/base/"):
                self.assertIn("inspector/base", reached)
            if row not in ("inspector/cli", "tests"):
                self.assertNotIn("inspector/cli", reached)
        self.assertFalse({r for r in tidy.ALLOWED["reference"] if r.startswith("runtime")})
        self.assertFalse({r for r in tidy.ALLOWED["runtime/plan"] if r.startswith("reference")})


class Functions(unittest.TestCase):
    def assert_functions(self, source, expected):
        self.assertEqual([(f.name, f.line, f.lines) for f in functions.functions(source)], expected)

    def test_namespaces_and_classes_are_not_functions(self):
        self.assert_functions("namespace a {\nclass B : public C {\n public:\n  int f() const {\n    return 1;\n  }\n};\n}\n", [("f", 4, 3)])

    def test_constructor_with_member_initializers(self):
        self.assert_functions("A::A(int x)\n    : x_{x},\n      y_{1, 2} {\n  g();\n}\n", [("A::A", 1, 5)])

    def test_braces_in_literals_and_comments(self):
        self.assert_functions('int f() {\n  auto s = R"x({{{)x";\n  char c = \'{\'; // {\n  return "}}"[0];\n}\n', [("f", 1, 5)])

    def test_data_is_not_a_function(self):
        self.assert_functions("constexpr Row kRows[] = {\n  {\"a\", size(1)},\n};\nstd::array<int, f(2)> a = {\n1,\n2};\n", [])

    def test_lambda_in_a_namespace_is_a_function(self):
        found = functions.functions("auto f = [](int x) {\n  return x;\n};\n")
        self.assertEqual([(f.line, f.lines) for f in found], [(1, 3)])

    def test_templates_and_operators(self):
        self.assert_functions("template <class T, class U = std::vector<T>>\nbool operator==(const T& a, const U& b) {\n  return true;\n}\n",
                              [("operator==", 1, 4)])

    def test_local_struct_counts_to_its_function(self):
        self.assert_functions("void f() {\n  struct L {\n    void g() {}\n  };\n}\n", [("f", 1, 5)])

    def test_digit_separators_are_not_literals(self):
        self.assert_functions("int f() {\n  return 1'000'000;\n}\nint g() {\n}\n", [("f", 1, 3), ("g", 4, 2)])

    def test_test_macro_is_named_with_its_arguments(self):
        self.assert_functions("TEST(Shape, Product) {\n}\n", [("TEST(Shape, Product)", 1, 2)])


if __name__ == "__main__":
    sys.exit(unittest.main())
