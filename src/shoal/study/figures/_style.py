"""The look of all figures, and how they are saved: as pictures and as numbers."""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import MissingExtra
from shoal.notebook import picture, view

#: Colors that color-blind people can distinguish (Okabe and Ito), dark enough for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Lose, draw, win.
VERDICTS = ("#D55E00", "#BBBBBB", "#0072B2")
#: Marks that distinguish families even in black and white.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = ("svg", "png", "pdf")

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11.0,
    "figure.dpi": 100.0,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,
    "savefig.bbox": "tight",
    "svg.fonttype": "path",
    "svg.hashsalt": "shoal",  # the same numbers give the same file
}


@dataclass(frozen=True)
class Figure:
    """A picture with the numbers that it shows, one row per mark."""

    drawing: Any
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def is_wide(self) -> bool:
        """Whether it needs the whole width of a page."""
        width, height = self.drawing.get_size_inches()
        return bool(width > 2 * height)

    def to_svg(self) -> bytes:
        """The picture as SVG."""
        stream = io.BytesIO()
        self._draw(stream, "svg")
        return stream.getvalue()

    def save(self, folder: str | Path, name: str) -> list[Path]:
        """Write the picture as SVG, PNG and PDF, and its numbers as CSV."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}.{ending}" for ending in FORMATS]
        for path, ending in zip(paths, FORMATS, strict=True):
            self._draw(path, ending)
        write_rows(folder / f"{name}.csv", self.columns, self.rows)
        return [*paths, folder / f"{name}.csv"]

    def _draw(self, place: Any, ending: str) -> None:
        meta = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending, {})
        _take_names_as_they_are(self.drawing)
        with styled(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # drawn as a box
            self.drawing.savefig(place, format=ending, metadata=meta, dpi=160)

    def _repr_html_(self) -> str:
        return view("", picture(self.to_svg(), ", ".join(self.columns)))


def finite(value: Any) -> Any:
    """Facts in a form that JSON can hold: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a small table as CSV."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(rows)


def _take_names_as_they_are(drawing: Any) -> None:
    """Keep dollar signs in names from being parsed as formulas."""
    from matplotlib.text import Text

    for text in drawing.findobj(Text):
        if "$" in text.get_text() and not text.get_text().startswith("$\\mathdefault"):
            text.set_parse_math(False)


@contextmanager
def styled() -> Iterator[None]:
    """Use the house style while something is drawn."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("Drawing a figure", "study") from None
    with matplotlib.rc_context(_STYLE):
        yield


@contextmanager
def canvas(width: float, height: float, **more: Any) -> Iterator[tuple[Any, Any]]:
    """An empty figure and its axes in the house style, without global state or a window."""
    with styled():
        from matplotlib.figure import Figure as Drawing

        drawing = Drawing(figsize=(width, height), layout="constrained")
        yield drawing, drawing.subplots(**more)


def labelled(axes: Any, xlabel: str, ylabel: str, title: str, *, empty: bool = False) -> None:
    """Label the axes, and mark an empty picture: a study may not have results yet."""
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    if empty:
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center")


def listed_on_the_left(axes: Any, names: Sequence[str]) -> None:
    """Label one place per name, from the bottom."""
    axes.set_yticks(range(len(names)), [shortened(name) for name in names])
    axes.set_ylim(-0.6, max(len(names), 1) - 0.4)


def room_for(names: Iterable[str], least: float, free: int) -> float:
    """The size of a picture with room for names that are longer than ``free`` characters."""
    return least + 0.07 * max([0, *(len(shortened(name)) - free for name in names)])


def colour_of(families: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """A color and a mark for each family, in the order of their first appearance."""
    names = list(dict.fromkeys(families))
    marks = len(MARKERS)  # as many as colors: shifted in each round, so that no pair repeats
    return {
        name: (COLOURS[place % len(COLOURS)], MARKERS[(place + place // marks) % marks])
        for place, name in enumerate(names)
    }


def shortened(name: str, most: int = 44) -> str:
    """A long name without its middle; its end, which has the parameters, is kept."""
    text = " ".join(name.split())
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 + 1 :]}"
