# SPDX-License-Identifier: Apache-2.0
"""Puts the makers of other tests on the path: wire and dumps of bad_input, the dump encoder of the benchmarks."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "bad_input"), str(ROOT / "tests" / "bench")]
