"""Write analyses as the rows of an output file: JSON lines, brackets, CoNLL-U or Parquet."""

import json
import shutil
from collections.abc import Sequence
from typing import IO, Protocol, Self

from lpcfg.kinds.constituency.results import Analysis
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies.head_rules import NOTE, arcs_of
from lpcfg.predict.documents import Item
from lpcfg.predict.forms import Output
from lpcfg.predict.tables import TableWriter
from lpcfg.trees.brackets import write
from lpcfg.trees.tree import Tree


class Writer(Protocol):
    """Writes analyses to an open file, in a `with` block; what an error ends is not finished."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None: ...

    def add(self, item: Item, analysis: Analysis) -> None: ...

    def copy(self, part: IO[bytes]) -> None:
        """Add what another writer of this kind wrote."""


def writer(output: Output, stream: IO[bytes], model: str) -> Writer:
    """Make the writer of a form. `model` is the model's hash, which rows carry."""
    if output is Output.PARQUET:
        return _Parquet(stream, model)
    kinds: dict[Output, type[_Json | _Brackets | _Conllu]]
    kinds = {Output.JSON: _Json, Output.BRACKETS: _Brackets, Output.CONLLU: _Conllu}
    return kinds[output](stream, model)


def row_of(item: Item, analysis: Analysis, model: str) -> dict[str, object]:
    """Return what is kept of an analysis, by column."""
    sure = [one.probability for one in analysis.constituents if one.probability is not None]
    return {
        "id": f"{item.document}:{item.place}",
        "document": item.document,
        "start": item.start,
        "end": item.end,
        "status": analysis.status,
        "reason": analysis.reason,
        "tree": None if analysis.tree is None else write(analysis.tree),
        "log_probability": analysis.log_probability,
        "probability": analysis.probability,
        "lowest_probability": min(sure, default=None),
        "unusual": analysis.unusual,
        "model": model,
    }


def conllu_of(analysis: Analysis, tree: Tree, comments: Sequence[str] = ()) -> str:
    """Write the arcs of a tree of an analysis as CoNLL-U."""
    known = all(token.end is not None for token in analysis.tokens)
    offsets = tuple((token.start or 0, token.end or 0) for token in analysis.tokens)
    arcs = arcs_of(tree, offsets if known else ())
    return conllu.write([conllu.sentence_of(arcs, analysis.sentence.text, [*comments, NOTE])])


class _Text:
    """Writes text; parts of it are joined by their bytes."""

    def __init__(self, stream: IO[bytes], model: str) -> None:
        self._stream = stream
        self._model = model

    def copy(self, part: IO[bytes]) -> None:
        shutil.copyfileobj(part, self._stream, 1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Leave the stream to whoever opened it."""


class _Json(_Text):
    """An object a line."""

    def add(self, item: Item, analysis: Analysis) -> None:
        row = row_of(item, analysis, self._model)
        line = json.dumps(row, ensure_ascii=False, allow_nan=False)
        self._stream.write(line.encode("utf-8", "backslashreplace") + b"\n")


class _Brackets(_Text):
    """A tree a line; a sentence without a tree leaves its line empty."""

    def add(self, item: Item, analysis: Analysis) -> None:
        del item
        tree = "" if analysis.tree is None else write(analysis.tree)
        self._stream.write(tree.encode("utf-8", "replace") + b"\n")


class _Conllu(_Text):
    """Arcs by head rules; a sentence without a tree is left out."""

    def add(self, item: Item, analysis: Analysis) -> None:
        if analysis.tree is not None:
            named = [f"sent_id = {item.document}:{item.place}"]
            text = conllu_of(analysis, analysis.tree, named)
            self._stream.write(text.encode("utf-8", "replace"))


class _Parquet(TableWriter):
    """A row a sentence."""

    def __init__(self, stream: IO[bytes], model: str) -> None:
        super().__init__(stream)
        self._model = model

    def add(self, item: Item, analysis: Analysis) -> None:  # type: ignore[override]
        super().add(row_of(item, analysis, self._model))
