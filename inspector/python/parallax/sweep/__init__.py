# SPDX-License-Identifier: Apache-2.0
"""Sweeps: many models, inputs, executors and options, each combination a process with limits, all results in one table.

``python -m parallax.sweep SPEC.toml|DIR`` does the same from a shell; SWEEPS.md next to this file has the specification,
the table and the rules of ids and records.

>>> from parallax.sweep import read_spec, sweep
>>> done = sweep(read_spec("nightly.toml"))                                                     # doctest: +SKIP
>>> done.verdicts                                                                               # doctest: +SKIP
{'pass': 298, 'diverged': 2}
"""

from __future__ import annotations

from parallax.sweep.changes import Changes, with_changes
from parallax.sweep.jobs import Progress, Sweep, save_baselines, sweep
from parallax.sweep.overview import write_overview
from parallax.sweep.spec import Limits, Spec, read_spec

__all__ = ["Changes", "Limits", "Progress", "Spec", "Sweep", "read_spec", "save_baselines", "sweep", "with_changes", "write_overview"]
