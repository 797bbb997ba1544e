# SPDX-License-Identifier: Apache-2.0
"""``python -m parallax.runners NAME [ARGUMENT]``: a runner of another runtime, which Parallax starts."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from parallax.runners import serve

# Name -> what its argument is.
RUNNERS = {
    "onnxruntime": "[PROVIDER]", "torch": "FILE.pt2 | MODULE:FUNCTION", "openvino": "[DEVICE]", "tensorrt": "",
}  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Talks for the runner of that name until stdin ends; 2 where there is none."""
    if not 1 <= len(arguments) <= 2 or arguments[0] not in RUNNERS:
        known = "".join(f"\n  python -m parallax.runners {name} {argument}".rstrip() for name, argument in RUNNERS.items())
        print(f"{' '.join(arguments) or 'nothing'!r} is no runner; it must be one of{known}\nThey speak JSON with Parallax, "
              "which starts them for --with NAME (inspector/exec/FOREIGN.md).", file=sys.stderr)  # fmt: skip
        return 2
    module = importlib.import_module(f"parallax.runners.{arguments[0]}")
    serve(module.make(arguments[1] if len(arguments) == 2 else ""))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
