# SPDX-License-Identifier: Apache-2.0
"""The installed torch does what the conversion expects of it."""

from parallax.torch._contract import check_torch_contract, supported_torch


def test_contract_holds() -> None:
    assert check_torch_contract() == [], supported_torch()


def test_tells_the_installed_version() -> None:
    import torch

    assert torch.__version__ in supported_torch()
