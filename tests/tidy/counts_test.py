# SPDX-License-Identifier: Apache-2.0
"""Plants one occurrence of each measure and asks that it is counted, at its line, and that the allowed uses are not."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import unittest
from unittest import mock

import counts
import words

OPENING = "// A file of the tree.\n"


def lines_of(measure: str, path: str, text: str) -> list[int]:
    return [found.line for found in counts.listing({path: text}, measure)]


class Measures(unittest.TestCase):
    def test_a_comment_block_counts_once_and_by_its_first_word(self) -> None:
        text = (OPENING + "\n// What a row holds.\n// Of these, two.\nint x;  // Of three.\n// Whatever.\n"
                "\n// The same\n// thing.\n")
        self.assertEqual(lines_of("bare openings", "a/b.cpp", text), [3, 8])

    def test_the_line_of_the_license_opens_no_block(self) -> None:
        text = "// SPDX-License-Identifier: Apache-2.0\n// What a row holds.\n"
        self.assertEqual(lines_of("bare openings", "a/b.h", text), [2])

    def test_docstrings_and_cmake_comments_count(self) -> None:
        text = '"""What it does."""\n\n\ndef f():\n    """Where it is."""\n'
        self.assertEqual(lines_of("bare openings", "a/b.py", text), [1, 5])
        self.assertEqual(lines_of("bare openings", "a/CMakeLists.txt", "project(a)\n# Whether it builds.\n"), [2])

    def test_files_beyond_the_45th_of_a_folder(self) -> None:
        files = {f"a/f{number}.cpp": OPENING for number in range(counts.FOLDER_FILES + 2)} | {"a/b/c.cpp": OPENING}
        self.assertEqual([found.path for found in counts.listing(files, "crowded folders")], ["a", "a"])

    def test_a_file_of_more_than_400_lines(self) -> None:
        self.assertEqual(lines_of("long files", "a/b.cpp", "\n" * 400), [])
        self.assertEqual(lines_of("long files", "a/b.cpp", "\n" * 401), [401])

    def test_writes_of_a_verdict_outside_the_one_file(self) -> None:
        text = "// value.verdict = 1;\nif (value.verdict == pass) value->verdict = pass;\nresult.verdict = pass;\n"
        self.assertEqual(lines_of("verdict writes", "inspector/diff/a.cpp", text), [2, 3])
        self.assertEqual(lines_of("verdict writes", counts.VERDICT_FILES[0], text), [])
        self.assertEqual(lines_of("verdict writes", "tests/a.cpp", text), [])

    def test_a_file_that_asks_the_processor_counts_once(self) -> None:
        text = 'int x;\nbool a = __builtin_cpu_supports("avx2");\nbool b = __builtin_cpu_supports("fma");\n'
        self.assertEqual(lines_of("cpu dispatch", "runtime/a.cpp", text), [2])

    def test_floating_constants_outside_the_table(self) -> None:
        text = ("constexpr double kNear = 1.5, kFar = 4;\n"
                "constexpr double kNone = std::numeric_limits<double>::infinity();\n")
        self.assertEqual(lines_of("thresholds", "inspector/diff/a.cpp", text), [1, 1])
        self.assertEqual(lines_of("thresholds", counts.THRESHOLD_TABLE, text), [])
        self.assertEqual(lines_of("thresholds", "inspector/render/a.cpp", text), [])


# For each word: a path, the text of uses that count, one a line, and of uses that do not.
USES: dict[str, tuple[str, str, str]] = {
    "halves": ("a.cpp", "store_many_halves\n// in halves", "// both halves of the range\n// rounds halves to even"),
    "codes": ("a.cpp", "codes_of(x)\n// the codes of a tensor", "// exit codes\nExitCodes\nencodes(x)"),
    "byte_*, nibble_*": ("a.cpp", "byte_products\nNibbleMatrix", "bytes_of_dump\nbytearray\nBYTECODE"),
    "turn": ("a.cpp", "turn_rows(x)\nconst auto turned = 1;", "// turned off\n// each in turn\nreturned"),
    "place": ("a.cpp", "PlacedNode x;\n// places of a row", "x.emplace_back(1);\n// changed in place"),
    "site": ("a.cpp", "ValueSite x;\n// a site", "site-packages\n// opposite"),
    "image": ("runtime/a.cpp", "// one image", "ImageDecoder"),
    "outbox, parcel, told": ("a.cpp", "Outbox outbox;\n// is told", "// told apart"),
    "letter, post": ("runtime/plan/a.cpp", "Letter x;\npost(x)", "postpone"),
    "leftovers": ("a.cpp", "class Leftovers;", "left over"[:4]),
    "guilty": ("a.cpp", "add_guilty(x)", "built"),
    "trials": ("a.cpp", "Trials trials_;", "industrials"),
    "withdraw": ("a.cpp", "take_back_pair(x)\n// is withdrawn", "take_pair(x)"),
    "leaves nothing, made up for": ("a.cpp", "// made up for\n// leaves nothing", "// leaves nothing else"),
    "felt": ("a.cpp", "is_unfelt(x)", "left"),
    "matter": ("a.cpp", "of_no_matter", "formatter\n// no matter how"),
    "otherwise": ("a.cpp", "written_otherwise", "// otherwise it fails"),
    "hand over": ("a.cpp", "check_hand_over(x)", "handle(over)"),
    "grown rounding": ("a.cpp", "accept_grown_rounding(x)", "// has grown"),
    "why_*": ("a.cpp", "why_shape(x)\nWhyEvidence x;", "// says why it is"),
    "spread": ("a.cpp", "Spread::moves", "spreadsheet"),
    "apart": ("a.cpp", "is_apart(x)\n// two ulps apart", "outputs_apart\n// tells them apart"),
    "rounds, looks, patience": ("a.cpp", "kPatience\nkLooksAtOnce", "// it looks for it"),
    "laced, strips, tame": ("runtime/a.cpp", "kLaced\n// in strips", "text.strip()\nentame"),
    "ms_*": ("a.cpp", "op_ms_gelu(x)\nms_gated_rows()", "wall_ms_a\nlatency_ms"),
    "doings, glass, stage": ("a.cpp", "// under the glass", "glasses"),
    "stage": ("gui/a.cpp", "StageOptions x;\n// the stage", "upstage"),
    "behind": ("a.cpp", "// behind it", "behindhand"),
    "beside": ("a.cpp", "// beside it", "besides"),
    "lies": ("a.cpp", "// where it lies", "// it must lie in [0, 1)\nfamilies"),
    "British spelling": ("a.cpp", "quantised\nColour x;\nnormalise(x)", "quantized\nnoise\notherwise\nelementwise"),
}


class Words(unittest.TestCase):
    def test_each_row_has_an_example(self) -> None:
        self.assertEqual(set(USES), {word.name for word in words.WORDS})

    def test_uses_count_and_allowed_uses_do_not(self) -> None:
        for name, (path, uses, allowed) in USES.items():
            with self.subTest(name):
                lines = list(range(1, uses.count("\n") + 2))
                self.assertEqual(sorted(set(lines_of(name, path, uses))), lines)
                self.assertEqual(lines_of(name, path, allowed), [])

    def test_a_path_counts(self) -> None:
        found = counts.listing({"runtime/byte_table.cpp": OPENING}, "byte_*, nibble_*")
        self.assertEqual([str(one) for one in found],
                         ["runtime/byte_table.cpp:0: runtime/byte_table.cpp"])


class Limits(unittest.TestCase):
    def test_each_measure_has_a_limit(self) -> None:
        self.assertEqual(set(counts.LIMITS), {*counts.MEASURES, *(word.name for word in words.WORDS)})

    def test_a_rise_fails_and_names_the_command(self) -> None:
        out = io.StringIO()
        with mock.patch.dict(counts.LIMITS, {"long files": 1}), contextlib.redirect_stdout(out):
            self.assertTrue(counts.report({"long files": 1}))
            self.assertFalse(counts.report({"long files": 2}))
        sentence = r"long files is 2; it must be at most 1\. `counts.py --list 'long files'` shows where\."
        self.assertTrue(re.search(sentence, out.getvalue()))


if __name__ == "__main__":
    sys.exit(unittest.main())
