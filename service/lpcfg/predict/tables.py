"""Read texts from Parquet, and write analyses as Parquet. The package pyarrow is an extra."""

from collections.abc import Iterator, Mapping
from typing import IO, Any, Self

from lpcfg.base.errors import InputError
from lpcfg.base.extras import extra

_ROWS = 1000
"""Rows held before they are written as a row group."""
_COLUMNS = {
    "id": "string",
    "document": "string",
    "start": "int64",
    "end": "int64",
    "status": "string",
    "reason": "string",
    "tree": "string",
    "log_probability": "float64",
    "probability": "float64",
    "lowest_probability": "float64",
    "unusual": "float64",
    "model": "string",
}


def _pyarrow() -> tuple[Any, Any]:
    with extra("parquet", "Parquet files"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def check_installed() -> None:
    """Raise an error that names the extra if Parquet cannot be read or written here."""
    _pyarrow()


def row_groups(stream: IO[bytes], name: str) -> int:
    """Count the row groups of a file, which are its pieces."""
    arrow, parquet = _pyarrow()
    try:
        return int(parquet.ParquetFile(stream).num_row_groups)
    except (arrow.ArrowException, OSError) as error:
        raise _no_parquet(name, error) from error


def _no_parquet(name: str, error: Exception) -> InputError:
    return InputError(f"expected a Parquet file, got something else at {name}: {error}")


def texts(
    stream: IO[bytes], name: str, group: int, text: str, id: str | None
) -> Iterator[tuple[int, str | None, str | None]]:
    """Yield (row, id, text) of the rows of a row group, a few hundred at a time in memory."""
    arrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(stream, pre_buffer=False)
        names = file.schema_arrow.names
        for wanted in (text, id):
            if wanted is not None and wanted not in names:
                raise InputError(
                    f"expected a column `{wanted}` in {name}, found {', '.join(names)}: name the "
                    "columns by --text-column and --id-column"
                )
        row = sum(file.metadata.row_group(k).num_rows for k in range(group))
        columns = [text, *([id] if id is not None and id != text else [])]
        for batch in file.iter_batches(256, row_groups=[group], columns=columns):
            values = batch.to_pydict()
            ids = values[id] if id is not None else [None] * batch.num_rows
            for one, content in zip(ids, values[text], strict=True):
                if content is not None and not isinstance(content, str):
                    raise InputError(f"expected text in the column `{text}` of {name}: name one")
                yield row, None if one is None else str(one), content
                row += 1
    except (arrow.ArrowException, OSError) as error:
        raise _no_parquet(name, error) from error


class TableWriter:
    """Writes rows as a Parquet file, a thousand a row group."""

    def __init__(self, stream: IO[bytes]) -> None:
        arrow, parquet = _pyarrow()
        self._arrow = arrow
        self._schema = arrow.schema(
            [(name, arrow.type_for_alias(of)) for name, of in _COLUMNS.items()]
        )
        self._writer = parquet.ParquetWriter(stream, self._schema, compression="zstd")
        self._rows: list[Mapping[str, object]] = []

    def add(self, row: Mapping[str, object]) -> None:
        self._rows.append(row)
        if len(self._rows) == _ROWS:
            self._flush()

    def copy(self, stream: IO[bytes]) -> None:
        """Add every row group of another file of this kind."""
        _, parquet = _pyarrow()
        file = parquet.ParquetFile(stream)
        for group in range(file.num_row_groups):
            self._writer.write_table(file.read_row_group(group))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._flush()
            self._writer.close()
        self._writer.is_open = False  # else it would close itself, on a closed file

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, self._schema))
            self._rows = []
