"""A latent-class bigram model: probabilities, perplexity, and its one file."""

import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from scipy import sparse

from lpcfg.base.errors import GrammarError, StoreError
from lpcfg.base.files import atomic_write
from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Longs
from lpcfg.lm.corpus import UNKNOWN, Sentence, Vocabulary

SUM_TOLERANCE = 1e-9
"""Distributions over up to 10⁶ outcomes sum to one within 10⁶ roundings of 2⁻⁵³."""
NOT_OURS = (zipfile.BadZipFile, KeyError, ValueError, EOFError, RuntimeError, TypeError)
"""Errors that numpy and zipfile raise for bytes that are not an archive of theirs.

They raise RuntimeError for bytes that claim to be encrypted or compressed in another way, and
TypeError for an array without an archive.
"""


class Training(BaseModel):
    """The settings and the result of an estimation."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    estimator: str
    states: int
    seed: int
    min_count: int
    prior: float
    max_steps: int
    pivot_steps: int
    """EM steps over r alone, which end the pivot estimator"""
    steps: int
    """EM steps over r and s"""
    dev_perplexity: float


class Header(BaseModel):
    """The facts of a stored model: all but its two tables."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants"
    )

    format: Literal[1] = 1
    training: Training
    words: tuple[str, ...]


@dataclass(frozen=True)
class LanguageModel:
    """p(w2 | w1) = Σ_h r(h | w1) s(w2 | h)."""

    vocabulary: Vocabulary
    contexts: Doubles
    """r(h | w1), (|V| + 1, m)"""
    words: Doubles
    """s(w2 | h), (|V|, m)"""
    training: Training

    def __post_init__(self) -> None:
        n, m = len(self.vocabulary.words), self.training.states
        _check_distributions("contexts", self.contexts, (n + 1, m), axis=1)
        _check_distributions("words", self.words, (n, m), axis=0)

    def probabilities(self, context: str | None) -> Doubles:
        """Compute p(· | context) over the vocabulary, (|V|,). None is the start of a sentence."""
        vocabulary = self.vocabulary
        row = vocabulary.start if context is None else vocabulary.number(context)
        return np.asarray(self.words @ self.contexts[row], dtype=np.float64)

    def perplexity(self, sentences: Iterable[Sentence]) -> float:
        """Compute exp of minus the mean log p(w2 | w1) over known w2; inf if one is impossible."""
        return perplexity(self.vocabulary.scored_bigrams(sentences), self.contexts, self.words)

    def save(self, path: Path) -> None:
        """Write one .npz file, atomically. The same model always gives the same bytes."""
        header = Header(training=self.training, words=self.vocabulary.words)
        text = np.frombuffer(header.model_dump_json().encode(), dtype=np.uint8)
        packed = io.BytesIO()
        np.savez(packed, header=text, contexts=self.contexts, words=self.words)
        try:
            atomic_write(path, packed.getvalue())
        except OSError as error:
            raise StoreError(
                f"cannot write the language model {path}: {error.strerror}: check the folder, its "
                "permissions and its space"
            ) from error

    @classmethod
    def load(cls, path: Path) -> "LanguageModel":
        """Read what `save` wrote. Refuse a file that is incomplete, changed or contradictory."""
        header, contexts, words = _read(path)
        try:
            return cls(_vocabulary(header.words), contexts, words, header.training)
        except GrammarError as error:
            raise StoreError(f"{path}: {error}: train the model again") from error


def perplexity(bigrams: sparse.csr_matrix, contexts: Doubles, words: Doubles) -> float:
    """Compute exp(−Σ count(w1, w2) log p(w2 | w1) / Σ count(w1, w2))."""
    total = _log_likelihood(bigrams.indptr, bigrams.indices, bigrams.data, contexts, words)
    return float(np.exp(-total / bigrams.data.sum()))


@compiled()
def _log_likelihood(
    row_start: Longs, column: Longs, count: Doubles, contexts: Doubles, words: Doubles
) -> float:
    """Compute Σ count log Σ_h r s over a sparse matrix's entries; −inf if one is impossible."""
    total = 0.0
    for w1 in range(len(row_start) - 1):
        for entry in range(row_start[w1], row_start[w1 + 1]):
            probability = np.dot(contexts[w1], words[column[entry]])
            total += count[entry] * np.log(probability)
    return total


def _check_distributions(name: str, table: Doubles, shape: tuple[int, int], *, axis: int) -> None:
    """Raise GrammarError unless the table has this shape and holds distributions along the axis."""
    if table.shape != shape or table.dtype != np.float64:
        raise GrammarError(
            f"expected `{name}` of shape {shape} and type float64, "
            f"got {table.shape} and {table.dtype}"
        )
    if not np.all(table >= 0) or not np.all(np.abs(table.sum(axis=axis) - 1) <= SUM_TOLERANCE):
        raise GrammarError(f"expected `{name}` to hold distributions along axis {axis}")


def _read(path: Path) -> tuple[Header, Doubles, Doubles]:
    """Read the header and the two tables. The .npz file has a checksum of each."""
    try:
        with path.open("rb") as opened, np.load(opened) as file:
            header = Header.model_validate_json(file["header"].tobytes())
            tables = [np.ascontiguousarray(file[name]) for name in ("contexts", "words")]
    except OSError as error:
        raise StoreError(
            f"expected a readable language model, got {error.strerror!r} at {path}: check the path "
            "and its permissions"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise StoreError(
            f"{path}: wrong header at `{field}`: {first['msg']}: train the model again"
        ) from error
    except NOT_OURS as error:
        raise StoreError(
            f"expected a language model in {path}, got a torn or foreign file: name one that "
            "`lpcfg lm train` wrote, or train the model again"
        ) from error
    return header, tables[0], tables[1]


def _vocabulary(words: tuple[str, ...]) -> Vocabulary:
    """Build the vocabulary from the header's words."""
    if words[:1] != (UNKNOWN,) or len(set(words)) != len(words):
        raise GrammarError(f"expected distinct words, the first `{UNKNOWN}`, in the header")
    return Vocabulary(words)
