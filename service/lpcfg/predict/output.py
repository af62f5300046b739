"""Write answers to an output file: as rows of JSON lines or Parquet, or in a form of their kind."""

import json
import shutil
from typing import IO, Any, Protocol, Self

from lpcfg.kinds.registry import AnyKind, kind_named
from lpcfg.predict.documents import Item
from lpcfg.predict.tables import TableWriter
from lpcfg.predict.tasks import RunSpec


class Writer(Protocol):
    """Writes answers to an open file, in a `with` block; what an error ends is not finished."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None: ...

    def add(self, item: Item, answer: Any) -> None: ...

    def copy(self, part: IO[bytes]) -> None:
        """Add what another writer of this kind wrote."""


def writer(spec: RunSpec, stream: IO[bytes]) -> Writer:
    """Make the writer of a run's form."""
    kind = kind_named(spec.kind)
    if spec.output == "parquet":
        return _Parquet(stream, kind, spec.hash)
    return _Text(stream, kind, spec)


def row_of(kind: AnyKind, item: Item, answer: Any, model: str) -> dict[str, object]:
    """Make the row of an answer, by the model with this hash."""
    return {
        "id": f"{item.document}:{item.place}",
        "document": item.document,
        "start": item.start,
        "end": item.end,
        "status": answer.status,
        "reason": answer.reason,
        **kind.row(answer),
        "model": model,
    }


class _Text:
    """Writes JSON lines, or a form of the kind; parts are joined by their bytes."""

    def __init__(self, stream: IO[bytes], kind: AnyKind, spec: RunSpec) -> None:
        self._stream, self._kind, self._spec = stream, kind, spec

    def add(self, item: Item, answer: Any) -> None:
        kind, spec = self._kind, self._spec
        if spec.output == "json":
            row = row_of(kind, item, answer, spec.hash)
            line = json.dumps(row, ensure_ascii=False, allow_nan=False)
            self._stream.write(line.encode("utf-8", "backslashreplace") + b"\n")
            return
        named = [f"sent_id = {item.document}:{item.place}"]
        text = kind.text(answer, spec.output, spec.options, named)
        if text is not None:
            self._stream.write(text.encode("utf-8", "replace") + b"\n")

    def copy(self, part: IO[bytes]) -> None:
        shutil.copyfileobj(part, self._stream, 1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Leave the stream to whoever opened it."""


class _Parquet(TableWriter):
    """Writes a row a sentence."""

    def __init__(self, stream: IO[bytes], kind: AnyKind, model: str) -> None:
        super().__init__(stream, kind.columns)
        self._kind, self._model = kind, model

    def add(self, item: Item, answer: Any) -> None:
        self.add_row(row_of(self._kind, item, answer, self._model))
