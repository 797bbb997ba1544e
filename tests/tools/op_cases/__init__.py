# SPDX-License-Identifier: Apache-2.0
"""Definitions of the cases of tests/ops, by family, and what turns them into the files there."""
