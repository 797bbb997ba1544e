# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of graphs that Parallax lays out (SVG) into matplotlib axes, as vectors that scale with them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

__all__ = ["draw_svg"]

_NAMESPACE = "{http://www.w3.org/2000/svg}"

# Class of a text -> size in pixels, weight, alignment, color.
_TEXTS = {
    "o": (11.0, "bold", "middle", None), "n": (11.0, "normal", "middle", None), "": (11.0, "normal", "middle", None),
    "s": (9.0, "normal", "start", "#555577"), "b": (9.0, "normal", "start", "#555577"),
}  # fmt: skip


def _number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, "0"))


def draw_svg(svg: str, ax: Any) -> tuple[float, float]:
    """Draws a picture into ``ax``, one data unit a pixel, and returns its width and height.

    It reads what the pictures of graphs are made of: rectangles, lines and texts.
    """
    root = ElementTree.fromstring(svg)
    width, height = (float(number) for number in root.get("viewBox", "0 0 1 1").split()[2:])
    for order, element in enumerate(root.iter()):  # what comes later covers what came before
        kind = element.tag.removeprefix(_NAMESPACE)
        if kind == "path":
            _draw_line(element, ax, order)
        elif kind == "rect" and not element.get("width", "").endswith("%"):
            _draw_box(element, ax, order)
        elif kind == "text":
            _draw_text(element, ax, order)
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return width, height


def _draw_line(element: ElementTree.Element, ax: Any, order: int) -> None:
    numbers = [float(text) for text in re.findall(r"-?[\d.]+", element.get("d", ""))]
    dashed = "s" in element.get("class", "").split()
    ax.plot(numbers[::2], numbers[1::2], color="#777777", linewidth=0.8, linestyle=":" if dashed else "-", zorder=2 + 1e-4 * order)


def _draw_box(element: ElementTree.Element, ax: Any, order: int) -> None:
    from matplotlib.patches import FancyBboxPatch

    radius = _number(element, "rx")
    is_body = element.get("class") == "b"
    dashed = is_body or element.get("stroke-dasharray") is not None
    ax.add_patch(
        FancyBboxPatch(
            (_number(element, "x"), _number(element, "y")), _number(element, "width"), _number(element, "height"),
            boxstyle=f"round,pad=0,rounding_size={radius}" if radius else "square,pad=0",
            facecolor="#FFFFFFBF" if is_body else element.get("fill", "#FFFFFF"),
            edgecolor="#4477AA" if is_body else element.get("stroke", "#333333"),
            linewidth=0.8 * float(element.get("stroke-width", "1")), linestyle="--" if dashed else "-", zorder=2 + 1e-4 * order,
        )  # fmt: skip
    )


def _draw_text(element: ElementTree.Element, ax: Any, order: int) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    text = (element.text or "").strip()
    if not text:
        return
    size, weight, anchor, color = _TEXTS.get(element.get("class", ""), _TEXTS[""])
    path = TextPath((0, 0), text, size=size * 0.92, prop=FontProperties(family="DejaVu Sans", weight=weight), usetex=False)
    # The layout reserves a width by the number of letters; wider fonts are narrowed to it.
    extents = path.get_extents()
    narrowed = min(1.0, 6.3 * len(text) / max(extents.width, 1e-9))
    left = -extents.width * narrowed / 2 if anchor == "middle" else 0.0
    placed = Affine2D().scale(narrowed, -1).translate(_number(element, "x") + left, _number(element, "y"))
    ink = color or element.get("fill", "#000000")
    ax.add_patch(PathPatch(placed.transform_path(path), facecolor=ink, edgecolor="none", zorder=2 + 1e-4 * order))
