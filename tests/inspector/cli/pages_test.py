#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages that verbs write with --html, in a browser: no error on the console, nothing cut off, and the node that is
to blame in sight.

pages_test.py PARALLAX
"""

import json
import re
import shutil
import subprocess
import unittest
from html import unescape
from pathlib import Path

from program import ProgramTest, main

ROOT = Path(__file__).resolve().parents[3]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# Runs after the page's own program, and leaves the measured figures in the document.
MEASURE = r"""
<script>
addEventListener("load", () => {
  const box = element => element.getBoundingClientRect();
  const center = part => box(part).top + box(part).height / 2;
  const luminance = color => {
    const [r, g, b] = color.match(/[\d.]+/g).slice(0, 3).map(part => part / 255).map(
      part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(document.body);
  const [low, high] = [luminance(style.color), luminance(style.backgroundColor)].sort((a, b) => a - b);
  const measured = {
    text: document.body.innerText,
    dark: luminance(style.backgroundColor) < 0.2,
    contrast: (high + 0.05) / (low + 0.05),
    wide: document.documentElement.scrollWidth - innerWidth,
    evidence: [...document.querySelectorAll(".evidence")].map(frame => {
      const culprit = frame.querySelector(".culprit");
      return culprit !== null && center(culprit) > box(frame).top && center(culprit) < box(frame).bottom;
    }),
    cut: [...document.querySelectorAll("svg text")].filter(text => {
      const picture = box(text.ownerSVGElement), own = box(text);
      return own.width > 0 && (own.left < picture.left - 2 || own.right > picture.right + 2);
    }).map(text => text.textContent),
    columns: [...document.querySelectorAll("details table")].map(table => [...table.rows[0].cells].map(cell => Math.round(box(cell).left))),
  };
  const shown = document.createElement("pre");
  shown.id = "measured";
  shown.textContent = JSON.stringify(measured);
  document.body.append(shown);
});
</script>
"""
PAIR = ("samples/fault_pair/A.onnx", "samples/fault_pair/B.onnx")


@unittest.skipUnless(BROWSER, "no chromium is installed")
class Pages(ProgramTest):
    def write_page(self, *line, code=0):
        line = [str(ROOT / part) if part.startswith("samples/") else part for part in line]
        ended = self.run_program(*line, "--html", "page.html", "--force")
        self.assertEqual(ended.returncode, code, ended.stderr)
        return (self.folder / "page.html").read_text()

    def measured(self, page):
        """The page as a browser draws it, in light and in dark colors."""
        figures = []
        (self.folder / "measured.html").write_text(page + MEASURE)
        for scheme in (1, 0):
            ended = subprocess.run(
                [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/browser", "--window-size=1280,1000",
                 f"--blink-settings=preferredColorScheme={scheme}", "--enable-logging=stderr", "--dump-dom",
                 (self.folder / "measured.html").as_uri()], capture_output=True, text=True, timeout=110)
            self.assertEqual([text for text in ended.stderr.splitlines() if ":CONSOLE" in text], [])
            found = re.search(r'<pre id="measured">(.*?)</pre>', ended.stdout, re.DOTALL)
            self.assertIsNotNone(found, ended.stdout[-1000:] + ended.stderr)
            figures.append(json.loads(unescape(found.group(1))))
        self.assertEqual([figure["dark"] for figure in figures], [False, True])
        for figure in figures:
            self.assertGreaterEqual(figure["contrast"], 7)
            self.assertLessEqual(figure["wide"], 0, "the page is wider than its window")
            self.assertEqual(figure["cut"], [])
        return figures[0]

    def test_a_comparison_shows_each_culprit_and_counts_its_rows(self):
        page = self.write_page("run", PAIR[0], "--against", PAIR[1], "--inputs", "samples/fault_pair/test_data_set_0", code=1)
        figures = self.measured(page)
        self.assertEqual(figures["evidence"], [True] * 3)
        self.assertIn("65 of 65 rows: 63 values and 2 expected outputs", figures["text"])
        self.assertIn("63\nvalues", figures["text"])

    def test_a_generation_says_how_many_of_its_values_are_listed(self):
        page = self.write_page("generate", "samples/decoder/model.textproto", "--prompt-ids", "1,2", "--max-new-tokens", "3",
                               "--with", "reference,cpu")
        text = self.measured(page)["text"]
        [(count, listed, values)] = re.findall(r"(\d+) of \1 rows: (\d+) of (\d+) values", text)
        self.assertEqual((count, listed), ("15", "15"))
        self.assertIn(f"{values}\nvalues", text)

    def test_a_generation_of_one_side(self):
        self.write_page("generate", "samples/decoder/model.textproto", "--prompt-ids", "1,2", "--max-new-tokens", "3")
        ended = self.run_program("generate", str(ROOT / "samples/decoder/model.textproto"), "--prompt-ids", "1", "--max-new-tokens",
                                 "1", "--html", "page.html")
        self.assertEqual(ended.returncode, 0, ended.stderr)  # an own page is replaced

    def test_several_runs(self):
        for executor in ("reference", "cpu"):
            self.assertEqual(self.run_program("run", str(ROOT / PAIR[0]), "--with", executor, "--dump", ".").returncode, 0)
        page = self.write_page("diff", "reference.plx", "cpu.plx", "reference.plx")
        self.assertIn("Error / limit along the graph", self.measured(page)["text"])

    def test_two_models(self):
        figures = self.measured(self.write_page("diff", *PAIR, code=1))
        self.assertIn("attribute epsilon: 0.001 in A, 1e-05 (the default) in B", figures["text"])

    def test_an_audit_has_its_columns_one_below_the_other(self):
        figures = self.measured(self.write_page("audit-fp16", "samples/cnn/model.onnx"))
        self.assertGreater(len(figures["columns"]), 3)
        self.assertEqual(len({tuple(columns) for columns in figures["columns"]}), 1)


if __name__ == "__main__":
    main()
