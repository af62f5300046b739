"""Plots as inline SVG. Their colours come from the page's style, which may be light or dark.

Every mark has its values as a title, which browsers show under the pointer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]
CHARACTER = 7.5
"""The mean width of a label's characters, as wide fonts of 12 pixels have it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a value, with ticks at other values, a note at its end and a title."""

    label: str
    value: float
    note: str
    title: str
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """A dot at a point, sized by its weight, and a title."""

    x: float
    y: float
    weight: float
    title: str


def bars(rows: Sequence[Bar], *, label: str, most: float) -> str:
    """Draw horizontal bars, one per row, from 0 to `most`."""
    longest, row, room = 280.0, 24.0, 96.0
    labels_width = _labels_width(one.label for one in rows)
    scale = longest / most if most else 0.0
    parts = []
    for k, one in enumerate(rows):
        y = k * row
        ticks = (labels_width + tick * scale for tick in one.ticks)
        end = labels_width + max((one.value, *one.ticks)) * scale
        inner = [
            _rect(labels_width, y + 4, one.value * scale, row - 8, "bar", radius=3),
            *(_line((x, y + 2), (x, y + row - 2)) for x in ticks),
            _text(labels_width - 8, y + row / 2, one.label, "label end"),
            _text(end + 8, y + row / 2, one.note),
        ]
        parts.append(_group(inner, one.title))
    return _svg(parts, labels_width + longest + room, row * len(rows), label)


def reliability(marks: Sequence[Mark], curves: Sequence[Sequence[Point]], *, label: str) -> str:
    """Draw how often items were right (upwards) against their predicted probability (to the right).

    Dots on the diagonal are well calibrated. The bars below the square count the items of each dot;
    `curves` are maps that would correct the probabilities.
    """
    side, left, top, below = 300.0, 54.0, 10.0, 56.0

    def at(x: float, y: float) -> Point:
        return left + x * side, top + (1 - y) * side

    parts = [_rect(left, top, side, side, "frame")]
    for k in range(6):
        share = k / 5
        (x, _), (_, y) = at(share, 0), at(0, share)
        parts += [
            _line((x, top), (x, top + side), "grid"),
            _line((left, y), (left + side, y), "grid"),
            _text(left - 8, y, f"{share:.1f}", "axis end"),
            _text(x, top + side + below + 14, f"{share:.1f}", "axis middle"),
        ]
    parts.append(_line(at(0, 0), at(1, 1), "diagonal"))
    parts += [_path([at(x, y) for x, y in curve], "curve") for curve in curves]
    heaviest = max((mark.weight for mark in marks), default=0.0)
    for mark in marks:
        share = mark.weight / heaviest
        x, y = at(mark.x, mark.y)
        parts.append(
            _group(
                [
                    _circle(x, y, 3 + 6 * share**0.5),
                    _rect(x - 5, top + side + 4, 10, max(below - 14, 0) * share**0.5, "bar"),
                ],
                mark.title,
            )
        )
    middle = left + side / 2
    parts += [
        _text(middle, top + side + below + 34, "probability stated", "axis middle"),
        _text(10, top + side / 2, "share that is right", "axis middle turned"),
    ]
    return _svg(parts, left + side + 12, top + side + below + 46, label)


def heat(rows: Sequence[tuple[str, Sequence[float], int, str]], *, columns: int, label: str) -> str:
    """Draw a row of squares for every name, shaded by values from 0 to 1.

    Each row is (name, values, number of framed squares, title).
    """
    size, labels_width = 15.0, _labels_width(name for name, *_ in rows)
    parts = []
    for k, (name, values, framed, title) in enumerate(rows):
        y = k * size
        inner = [_text(labels_width - 8, y + size / 2, name, "label end")]
        inner += [
            f'<rect x="{_n(labels_width + i * size)}" y="{_n(y)}" width="{_n(size - 1)}" '
            f'height="{_n(size - 1)}" class="heat" fill-opacity="{value:.3f}"/>'
            for i, value in enumerate(values)
        ]
        inner.append(_rect(labels_width - 0.5, y - 0.5, framed * size, size, "kept"))
        parts.append(_group(inner, title))
    bottom = size * len(rows)
    parts += [
        _text(labels_width + (k - 0.5) * size, bottom + 12, str(k), "axis middle")
        for k in (1, *range(8, columns + 1, 8))
        if k <= columns
    ]
    return _svg(parts, labels_width + columns * size + 8, bottom + 24, label)


# Elements -----------------------------------------------------------------------------------------


def _svg(parts: Iterable[str], width: float, height: float, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _labels_width(labels: Iterable[str]) -> float:
    """Return a width that the longest of these labels fits into."""
    return 16 + CHARACTER * max(map(len, labels), default=0)


def _group(parts: Iterable[str], title: str) -> str:
    return f"<g><title>{escape(title)}</title>{''.join(parts)}</g>"


def _rect(x: float, y: float, width: float, height: float, kind: str, *, radius: float = 0) -> str:
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(max(height, 0))}" '
        f'rx="{_n(radius)}" class="{kind}"/>'
    )


def _line(start: Point, end: Point, kind: str = "tick") -> str:
    return (
        f'<line x1="{_n(start[0])}" y1="{_n(start[1])}" x2="{_n(end[0])}" y2="{_n(end[1])}" '
        f'class="{kind}"/>'
    )


def _circle(x: float, y: float, radius: float) -> str:
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" class="dot"/>'


def _path(points: Iterable[Point], kind: str) -> str:
    steps = " L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    return f'<path d="M{steps}" class="{kind}"/>'


def _text(x: float, y: float, text: str, kind: str = "note") -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}" class="{kind}">{escape(text)}</text>'


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
