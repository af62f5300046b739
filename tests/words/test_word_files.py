"""Eigenwords on disk: both formats, and files that are torn, altered or foreign."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from lpcfg.base.errors import StoreError
from lpcfg.words.cca import EigenwordOptions, learn
from lpcfg.words.eigenwords import Eigenwords
from lpcfg.words.files import load, save
from tests.words.test_eigenwords import sample


def test_safetensors_keep_words_vectors_and_contexts_exactly(tmp_path: Path) -> None:
    words = learn([*sample(0, 40), ["two words", "é"]], options=EigenwordOptions(dimensions=3))
    save(words, tmp_path / "words.safetensors")
    read = load(tmp_path / "words.safetensors")
    assert read.words == words.words
    assert np.array_equal(read.vectors, words.vectors)
    tokens = ["a", "unknown", "two words", "b"]
    assert np.array_equal(read.token_vectors(tokens), words.token_vectors(tokens))
    assert [path.name for path in tmp_path.iterdir()] == ["words.safetensors"]


def test_the_same_vectors_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.safetensors", "two.safetensors"):
        save(learn(sample(0, 40), options=EigenwordOptions(dimensions=3)), tmp_path / name)
    one, two = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert one == two


def test_word2vec_text_keeps_vectors_to_six_digits(tmp_path: Path) -> None:
    words = learn([*sample(0, 40), ["two words"]], options=EigenwordOptions(dimensions=3))
    save(words, tmp_path / "words.txt")
    read = load(tmp_path / "words.txt")
    assert read.words == tuple(word.replace(" ", "_") for word in words.words)
    assert np.abs(read.vectors - words.vectors).max() < 1e-5  # values up to 1, six digits
    assert read.contexts is None


def test_foreign_word2vec_text_is_folded_and_scaled_to_length_one(tmp_path: Path) -> None:
    file = tmp_path / "foreign.gz"
    file.write_bytes(gzip.compress(b"3 2\nThe 3 4\nthe 1 0\n1999 0 2\n"))
    read = load(file)
    assert read.words == ("the", "0000")
    assert read.vectors.tolist() == pytest.approx(np.array([[0.6, 0.8], [0, 1]]))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "got 0"),
        ("a 1 2\n", "two whole numbers"),
        ("1 2\na 1 x\n", ":2, got 'a 1 x'"),
        ("1 2\na 1 nan\n", ":2, got 'a 1 nan'"),
        ("2 2\na 1 2\nb 1\n", "a word and 2 numbers, at .*:3"),
        ("2 2\na 1 2\n", "expected 2 words .* got 1"),
    ],
)
def test_malformed_word2vec_text_is_refused_with_its_line(
    text: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "words.txt"
    file.write_text(text)
    with pytest.raises(StoreError, match=problem):
        load(file)


def test_a_torn_or_altered_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.safetensors"
    save(learn(sample(0, 40), options=EigenwordOptions(dimensions=3)), path)
    whole = path.read_bytes()
    for broken, problem in (
        (whole[:-9], "torn or foreign"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "SHA-256 differs"),
        (b"not tensors", "torn or foreign"),
        (safetensors.numpy.save({"words": np.zeros(1)}), "version 1 .* got None"),
    ):
        path.write_bytes(broken)
        with pytest.raises(StoreError, match=problem):
            load(path)


def test_an_absent_file_is_refused_and_so_is_an_absent_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="check the path"):
        load(tmp_path / "none.safetensors")
    words = Eigenwords(("a",), np.ones((1, 1), np.float32))
    with pytest.raises(StoreError, match="cannot write"):
        save(words, tmp_path / "none" / "words.safetensors")
