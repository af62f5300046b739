"""Eigenwords in files: .safetensors holds everything, word2vec's text the vectors alone.

In a .safetensors file, `words` is UTF-8 with a line break behind each word, `vectors` (n, d),
`left` and `right` (rates, n + 2, d) the projections of contexts. The metadata, one JSON object
under the key `eigenwords`, has the format's version, the rates and a SHA-256 of the tensors, as
safetensors has no checksum. (One key, because the order of several is not fixed.)

Word2vec's text begins with a line `n d`; then a word and its numbers a line, between blanks. Blanks
inside a word become `_`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError, StoreError
from lpcfg.base.files import atomic_write
from lpcfg.text.files import lines
from lpcfg.words.context import Contexts
from lpcfg.words.eigenwords import Eigenwords, fold

SUFFIX = ".safetensors"
KIND = "eigenwords"
VERSION = 1

Tensors = Mapping[str, NDArray[Any]]


def save(words: Eigenwords, path: Path) -> None:
    """Write eigenwords, atomically: as safetensors if the name ends so, else as word2vec's text."""
    if path.suffix == SUFFIX:
        rates = words.contexts.rates if words.contexts else ()
        write_tensors(path, KIND, tensors_of(words), {"rates": rates})
    else:
        _write(path, _text(words).encode())


def load(path: Path) -> Eigenwords:
    """Read what `save` wrote, or any vectors in word2vec's text format, also .gz."""
    if path.suffix != SUFFIX:
        return _read_text(path)
    tensors, facts = read_tensors(path, KIND)
    with contradictions_named(path):
        return words_of(tensors, tuple(facts["rates"]))


def tensors_of(words: Eigenwords) -> dict[str, NDArray[Any]]:
    """Name the arrays that hold eigenwords."""
    text = "".join(f"{word}\n" for word in words.words).encode()
    tensors: dict[str, NDArray[Any]] = {
        "words": np.frombuffer(text, np.uint8),
        "vectors": words.vectors,
    }
    if words.contexts is not None:
        tensors |= {"left": words.contexts.left, "right": words.contexts.right}
    return tensors


def words_of(tensors: Tensors, rates: tuple[float, ...]) -> Eigenwords:
    """Build eigenwords from the arrays that `tensors_of` named."""
    words = tuple(tensors["words"].tobytes().decode().split("\n")[:-1])
    contexts = Contexts(rates, tensors["left"], tensors["right"]) if rates else None
    return Eigenwords(words, tensors["vectors"], contexts)


def write_tensors(path: Path, kind: str, tensors: Tensors, facts: Mapping[str, object]) -> None:
    """Write a .safetensors file of some kind, atomically; the same content has the same bytes."""
    sealed = {"version": VERSION, **facts, "sha256": _digest(tensors)}
    _write(path, safetensors.numpy.save(dict(tensors), {kind: json.dumps(sealed)}))


def read_tensors(path: Path, kind: str) -> tuple[Tensors, dict[str, Any]]:
    """Read what `write_tensors` wrote; what is torn, altered or of another kind is refused."""
    try:
        with safetensors.safe_open(path, "numpy") as file:
            facts = json.loads((file.metadata() or {}).get(kind, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise StoreError(
            f"expected a readable file of {kind}, got {_reason(error)!r} at {path}: "
            "check the path and its permissions"
        ) from error
    except (safetensors.SafetensorError, ValueError) as error:
        raise StoreError(
            f"expected {kind} in {path}, got a torn or foreign file ({error}): {_AGAIN}"
        ) from error
    if facts.get("version") != VERSION:
        raise StoreError(
            f"expected {kind} of version {VERSION} in {path}, got {facts.get('version')}: {_AGAIN}"
        )
    if facts.get("sha256") != _digest(tensors):
        raise StoreError(
            f"expected {kind} as they were written in {path}, got others (their SHA-256 differs): "
            "restore the file from a copy or train again"
        )
    return tensors, facts


def _reason(error: OSError) -> str:
    """Return what the system says. Errors of safetensors are text alone, with the path behind."""
    return error.strerror or str(error).partition(":")[0]


@contextmanager
def contradictions_named(path: Path) -> Iterator[None]:
    """Name the file in errors about parts of it that do not fit each other."""
    try:
        yield
    except (GrammarError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path}: {error}: {_AGAIN}") from error


_AGAIN = "name a file that this command's `train` wrote, or train again"


def _write(path: Path, data: bytes) -> None:
    try:
        atomic_write(path, data)
    except OSError as error:
        raise StoreError(
            f"cannot write the vectors {path}: {error.strerror}: check the folder, its permissions "
            "and its space"
        ) from error


def _digest(tensors: Tensors) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape} ".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()


def _text(words: Eigenwords) -> str:
    rows = (
        " ".join([word.replace(" ", "_"), *(f"{value:.6g}" for value in row)])
        for word, row in zip(words.words, words.vectors.tolist(), strict=True)
    )
    return "\n".join([f"{len(words.words)} {words.dimensions}", *rows, ""])


def _read_text(path: Path) -> Eigenwords:
    """Read word2vec's text; of words that fold to the same, the first has its vector."""
    rows: dict[str, NDArray[np.float32]] = {}
    shape: list[int] = []
    count = 0
    for number, line in enumerate(lines(path), start=1):
        fields = line.rstrip("\r\n ").split(" ")
        try:
            if number == 1:
                shape = [int(field) for field in fields]
                _n, width = shape
                continue
            vector = np.array(fields[1:], np.float32)
            if len(vector) != width or not np.isfinite(vector).all():
                raise ValueError(f"{width} finite numbers wanted")
        except ValueError as error:
            wanted = (
                "two whole numbers, `words dimensions`"
                if number == 1
                else (f"a word and {shape[1]} numbers")
            )
            raise StoreError(
                f"expected {wanted}, at {path}:{number}, got {line.strip()[:60]!r}: give a file in "
                "word2vec's text format or one that ends in .safetensors"
            ) from error
        count += 1
        rows.setdefault(fold(fields[0]), vector / (float(np.linalg.norm(vector)) or 1.0))
    if not shape or count != shape[0]:
        raise StoreError(
            f"expected {shape[0] if shape else 'some'} words in {path}, got {count}: the file is "
            "cut off; copy it again"
        )
    return Eigenwords(tuple(rows), np.array(list(rows.values()), np.float32).reshape(-1, shape[1]))
