"""Read texts from Parquet, and write answers as Parquet. The package pyarrow is an extra."""

from collections.abc import Iterator, Mapping
from typing import IO, Any, Self

from lpcfg.base.errors import InputError
from lpcfg.base.extras import extra
from lpcfg.kinds.kind import Column

_ROWS = 1000
"""Rows held before they are written as a row group."""
_BEFORE = {
    "id": "string",
    "document": "string",
    "start": "int64",
    "end": "int64",
    "status": "string",
    "reason": "string",
}
_AFTER = {"model": "string"}


def _pyarrow() -> tuple[Any, Any]:
    with extra("parquet", "Parquet files"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def check_installed() -> None:
    """Raise an error that names the extra if Parquet cannot be read or written here."""
    _pyarrow()


def row_ranges(stream: IO[bytes], name: str, column: str, size: int) -> list[range]:
    """Cut the rows of a file into ranges, in no two row groups, of about `size` bytes of text."""
    arrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(stream)
        found, first = list[range](), 0
        for group in map(file.metadata.row_group, range(file.num_row_groups)):
            columns = map(group.column, range(group.num_columns))
            wide = [one for one in columns if one.path_in_schema == column]
            parts = -(-sum(one.total_uncompressed_size for one in wide) // size) or 1
            step = -(-group.num_rows // parts) or 1
            last = first + group.num_rows
            found += [range(k, min(k + step, last)) for k in range(first, last, step)]
            first = last
        return found
    except (arrow.ArrowException, OSError) as error:
        raise _no_parquet(name, error) from error


def _no_parquet(name: str, error: Exception) -> InputError:
    return InputError(f"expected a Parquet file, got something else at {name}: {error}")


def texts(
    stream: IO[bytes], name: str, rows: range, text: str, id: str | None
) -> Iterator[tuple[int, str | None, str | None]]:
    """Yield (row, id, text) of a range of rows, a few hundred at a time in memory."""
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
        group = row = 0
        while (count := file.metadata.row_group(group).num_rows) <= rows.start - row:
            group, row = group + 1, row + count
        columns = [text, *([id] if id is not None and id != text else [])]
        for batch in file.iter_batches(256, row_groups=[group], columns=columns):
            values = batch.to_pydict() if row + batch.num_rows > rows.start else {}
            for k in range(max(rows.start - row, 0), min(rows.stop - row, batch.num_rows)):
                content, one = values[text][k], values[id][k] if id is not None else None
                if content is not None and not isinstance(content, str):
                    raise InputError(f"expected text in the column `{text}` of {name}: name one")
                yield row + k, None if one is None else str(one), content
            row += batch.num_rows
            if row >= rows.stop:
                return
    except (arrow.ArrowException, OSError) as error:
        raise _no_parquet(name, error) from error


class TableWriter:
    """Writes rows as a Parquet file, a thousand a row group."""

    def __init__(self, stream: IO[bytes], columns: Mapping[str, Column]) -> None:
        arrow, parquet = _pyarrow()
        self._arrow = arrow
        self._schema = arrow.schema(_types(arrow, {**_BEFORE, **columns, **_AFTER}))
        self._writer = parquet.ParquetWriter(stream, self._schema, compression="zstd")
        self._rows: list[Mapping[str, object]] = []

    def add_row(self, row: Mapping[str, object]) -> None:
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


def _types(arrow: Any, columns: Mapping[str, Column]) -> list[tuple[str, Any]]:
    """Make the types of columns: of a list of records from the types of their members."""
    return [
        (name, arrow.list_(arrow.struct(_types(arrow, of))))
        if isinstance(of, Mapping)
        else (name, arrow.type_for_alias(of))
        for name, of in columns.items()
    ]
