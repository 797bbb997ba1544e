# SPDX-License-Identifier: Apache-2.0
"""Every block of samples/GUIDE.md runs, those that call Python included, and shows what the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_guide() -> None:
    command = [sys.executable, "-B", str(ROOT / "tests/samples/walkthrough.py"), "--samples", str(ROOT / "samples")]
    command += ["--page", "GUIDE.md", "--parallax", os.environ["PARALLAX_PROGRAM"], "--python", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" 0 failed, 0 left out\n"), done.stdout
