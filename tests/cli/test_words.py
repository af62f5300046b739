"""`lpcfg words` as people and scripts meet it."""

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from lpcfg.cli import main
from lpcfg.cli.words import Method
from lpcfg.words import cca
from lpcfg.words.files import load

TREE = "(S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .))\n"
TEXT = """The dog barks loudly. The cat sleeps. A dog sleeps here.
The cat barks (loudly). A cat eats. The dog eats in 2011.
"""
LR_MVL = ("--method", "lr-mvl")


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture
def vectors(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Write a file of vectors with 3 dimensions."""
    path = str(tmp_path / "words.safetensors")
    assert main(["words", "train", text, "--output", path, "--dimensions", "3"]) == 0
    capsys.readouterr()
    return path


def test_the_command_knows_every_method() -> None:
    assert get_args(Method) == get_args(cca.Method)


@pytest.mark.parametrize("method", get_args(Method))
def test_train_writes_vectors_of_text_and_treebank(
    method: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees, path = tmp_path / "trees.mrg", tmp_path / "words.safetensors"
    trees.write_text(TREE.replace("barks", "growls"))
    command = ["words", "train", text, "--treebank", str(trees), "--output", str(path)]
    rate = ["--rate", "0.7"] if method == "lr-mvl" else []
    options = ["--words", "4", "--dimensions", "2", "--method", method, *rate, "--json"]
    assert main([*command, *options]) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    words = load(path)
    assert facts == {
        "path": str(path),
        "words": len(words.words),
        "dimensions": 2,
        "method": method,
    }
    assert {"the", ".", "cat", "growls"} <= set(words.words)  # growls is kept, rare as it is
    assert "here" not in words.words
    assert "reading text" in err
    assert words.contexts is not None
    assert words.contexts.rates == ((0.7,) if method == "lr-mvl" else (1.0,))


def test_train_writes_word2vec_text_where_the_name_asks_for_it(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "words.txt"
    assert main(["words", "train", text, "--output", str(path), "--dimensions", "2"]) == 0
    first, second = path.read_text().splitlines()[:2]
    assert first == f"{len(load(path).words)} 2"
    assert len(second.split(" ")) == 3
    assert "words, 2 dimensions" in capsys.readouterr().out


def test_near_prints_words_with_their_cosines(
    vectors: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["words", "near", vectors, "Dog", "--count", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    expected = load(Path(vectors)).near("dog", 2)
    assert [(one["word"], one["cosine"]) for one in answer["near"]] == expected
    assert main(["words", "near", vectors, "dog", "cat", "--count", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["dog", "dog", "cat", "cat"]
    assert rows[0][1:] == [expected[0][0], f"{expected[0][1]:.3f}"]


def test_near_says_of_an_unknown_word_that_it_is_none(
    vectors: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["words", "near", vectors, "zebra"]) == 1
    assert "expected a word with a vector, got 'zebra'" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "width"), [([], 3), (["--context"], 9)])
def test_vectors_prints_a_row_for_each_token(
    options: list[str],
    width: int,
    vectors: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text("The zebra barks\n")
    assert main(["words", "vectors", vectors, str(file), *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["The", "zebra", "barks", ""]
    assert {len(line.split(" ")) for line in lines[:3]} == {width + 1}
    assert lines[1].split(" ")[1:4] == ["0", "0", "0"]
    assert main(["words", "vectors", vectors, str(file), "--json", *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["tokens"] == ["The", "zebra", "barks"]
    assert np.shape(answer["vectors"]) == (3, width)


def test_word2vec_text_has_no_contexts_to_print(
    vectors: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "plain.txt"
    text.write_text("1 2\na 1 0\n")
    assert main(["words", "vectors", str(text), vectors, "--context"]) == 1
    assert "word" in capsys.readouterr().err
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("a\n")
    assert main(["words", "vectors", str(text), str(tokens), "--context"]) == 1
    assert "expected eigenwords with context projections" in capsys.readouterr().err


def test_classes_prints_the_class_of_every_word(
    vectors: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["words", "classes", vectors, "--classes", "4"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    words = load(Path(vectors)).words
    assert [row[0] for row in rows] == list(words)
    assert {int(row[1]) for row in rows} == set(range(4))
    assert main(["words", "classes", vectors, "--classes", "4", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == list(words)
    assert main(["words", "classes", vectors, "--classes", "999"]) == 1
    assert "classes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--output", "w.txt"], 2, "expected TEXT or --treebank"),
        (["absent.txt", "--output", "w.txt"], 1, "expected a file of text, got absent.txt"),
        (["TEXT", "--output", "no/w.txt"], 1, "there is no folder"),
        (["TEXT", "--output", "w.txt", *LR_MVL, "--rate", "2"], 1, "above 0 and up to 1, got 2:"),
        (["TEXT", "--output", "w.txt", "--rate", "0.5"], 2, "--rate with --method lr-mvl alone"),
        (["EMPTY", "--output", "w.txt"], 1, "got no word"),
        (["TORN", "--output", "w.txt"], 1, "expected UTF-8"),
    ],
)
def test_bad_input_to_train_is_refused_and_nothing_is_written(
    arguments: list[str],
    code: int,
    problem: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "torn").write_bytes(b"\xff\xfe\n")
    names = {"TEXT": text, "EMPTY": "empty", "TORN": "torn"}
    assert main(["words", "train", *(names.get(one, one) for one in arguments)]) == code
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "w.txt").exists()
