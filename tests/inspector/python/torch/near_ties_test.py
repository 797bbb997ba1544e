# SPDX-License-Identifier: Apache-2.0
"""A first choice within the measured rounding is a near tie; a wider one, or a side that rounds more, is wrong."""

from __future__ import annotations

from near_ties import Difference


def test_a_margin_within_both_distances_is_a_near_tie() -> None:
    assert Difference(theirs=0.02, ours=0.01, margin=0.029, bound=0.03, step=4).is_near_tie


def test_a_wider_margin_is_wrong() -> None:
    assert not Difference(theirs=0.02, ours=0.01, margin=0.031, bound=0.03, step=4).is_near_tie


def test_a_side_further_from_float64_cannot_widen_its_own_bound() -> None:
    assert not Difference(theirs=0.02, ours=0.05, margin=0.01, bound=0.07, step=4).is_near_tie
