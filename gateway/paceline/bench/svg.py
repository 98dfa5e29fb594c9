"""Line charts as SVG text, with intervals: enough for a bench's page, without a drawing library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 170, 34, 46
# Okabe and Ito's colours, which people with any colour vision tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: points (x, y), and where known the interval (low, high) of each."""

    name: str
    points: Sequence[tuple[float, float]]
    intervals: Sequence[tuple[float, float]] = ()
    dashed: bool = False


def chart(
    title: str,
    x_label: str,
    y_label: str,
    lines: Sequence[Line],
    *,
    level: float | None = None,
    y_limits: tuple[float, float] | None = None,
) -> str:
    """An `<svg>` of the lines; `level` draws a horizontal line. What lies outside `y_limits` is
    cut off. Raises ValueError without a point."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    ys += [y for line in lines for pair in line.intervals for y in pair]
    if not xs:
        raise ValueError("a chart needs points")
    low, high = y_limits or _widened(min([*ys, *_known(level)]), max([*ys, *_known(level)]))
    plot = _Plot(min(xs), max(xs), low, high)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        *_axes(plot, x_label, y_label),
    ]
    if level is not None:
        y = plot.y(level)
        parts.append(_segment(LEFT, y, WIDTH - RIGHT, y, "#888", dashed=True))
    for at, line in enumerate(lines):
        parts += _drawn(plot, line, COLOURS[at % len(COLOURS)], at)
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Plot:
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        share = (value - self.x_low) / ((self.x_high - self.x_low) or 1.0)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / ((self.y_high - self.y_low) or 1.0)
        return HEIGHT - BOTTOM - min(1.0, max(0.0, share)) * (HEIGHT - TOP - BOTTOM)


def _axes(plot: _Plot, x_label: str, y_label: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [
        _segment(LEFT, bottom, right, bottom, "#444"),
        _segment(LEFT, TOP, LEFT, bottom, "#444"),
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}'
        "</text>",
        f'<text transform="translate(14 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>",
    ]
    for value in ticks(plot.x_low, plot.x_high):
        x = plot.x(value)
        parts.append(_segment(x, bottom, x, bottom + 4, "#444"))
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>')
    for value in ticks(plot.y_low, plot.y_high):
        y = plot.y(value)
        parts.append(_segment(LEFT, y, right, y, "#eee"))
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    return parts


def _drawn(plot: _Plot, line: Line, colour: str, at: int) -> list[str]:
    placed = [(plot.x(x), plot.y(y)) for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>']
    if len(placed) <= 20:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
    for (x, _), (low, high) in zip(placed, line.intervals, strict=False):
        parts.append(_segment(x, plot.y(low), x, plot.y(high), colour))
    y = TOP + 8 + 18 * at
    parts.append(_segment(WIDTH - RIGHT + 12, y, WIDTH - RIGHT + 32, y, colour, width=2))
    parts.append(f'<text x="{WIDTH - RIGHT + 38}" y="{y + 4}">{escape(line.name)}</text>')
    return parts


def _segment(
    x1: float, y1: float, x2: float, y2: float, colour: str, *, width: int = 1, dashed: bool = False
) -> str:
    dash = ' stroke-dasharray="4 4"' if dashed else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"{dash}/>'
    )


def ticks(low: float, high: float) -> list[float]:
    """Some five round values within [low, high]."""
    if high <= low:
        return [low]
    rough = (high - low) / 5
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    first = ceil(low / step - 1e-9)
    return [round(index * step, 10) for index in range(first, floor(high / step + 1e-9) + 1)]


def _widened(low: float, high: float) -> tuple[float, float]:
    margin = 0.06 * ((high - low) or abs(high) or 1.0)
    return (0.0 if 0.0 <= low < 0.3 * high else low - margin), high + margin


def _known(level: float | None) -> list[float]:
    return [] if level is None else [level]
