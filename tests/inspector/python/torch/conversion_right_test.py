# SPDX-License-Identifier: Apache-2.0
"""Right conversions raise no alarm: every model, whole, in half precision, of free sizes."""

import pytest
from conversion_models import MAKERS, exported

import parallax.torch as pt


@pytest.mark.parametrize("name", MAKERS)
def test_a_right_export_passes(name):
    model = exported(name)
    explanation = pt.explain_conversion(model.program, model.args, model.kwargs)
    assert explanation, explanation.text
    assert explanation.verdict == "pass" and explanation.causes == []
    summary = explanation.comparison.summary
    assert summary.diverged == summary.mistrusted == 0
    assert summary.compared >= 5


def test_a_kernel_is_told_from_a_conversion():
    """Checks the graph on the fast executor: nothing is wrong with it either."""
    model = exported("block")
    assert pt.explain_conversion(model.program, model.args, executor="cpu")
