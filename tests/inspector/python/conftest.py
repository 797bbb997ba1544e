# SPDX-License-Identifier: Apache-2.0
"""Setting of the Python package's tests: what they share is importable as ``small_models``, also from torch/."""

import os
import sys

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # other programs want the cores, too
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
