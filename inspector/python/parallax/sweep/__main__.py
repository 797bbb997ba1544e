# SPDX-License-Identifier: Apache-2.0
"""``python -m parallax.sweep``."""

from parallax.sweep.command import main

if __name__ == "__main__":
    raise SystemExit(main())
