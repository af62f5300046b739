"""`lpcfg similarity` as people and scripts meet it."""

import json
from pathlib import Path

import pytest

from lpcfg.cli import main
from lpcfg.words.files import save
from lpcfg.words.similarity import Similarity
from tests.words.test_similarity import scored, vectors


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Write two sets of pairs and their scores, and return the options that name them."""
    options = []
    for seed in range(2):
        pairs, scores = scored(seed)
        names = [tmp_path / f"{kind}{seed}.txt" for kind in ("pairs", "scores")]
        names[0].write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
        names[1].write_text("".join(f"{score}\n" for score in scores))
        options += ["--pairs", str(names[0]), "--scores", str(names[1])]
    return options


@pytest.fixture
def measure(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    save(vectors(), tmp_path / "words.safetensors")
    path = str(tmp_path / "measure.safetensors")
    options = ["--words", str(tmp_path / "words.safetensors"), "--output", path]
    assert main(["similarity", "train", *files, *options, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["pairs"] == 120
    assert facts["features"][-1] == "eigenwords"
    return path


def test_score_prints_a_score_a_pair_or_tokens_and_alignments(
    measure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "two.txt"
    pairs.write_text("big cat\tlarge cat\nred house\tnothing\n")
    expected = Similarity.load(Path(measure)).score(
        [("big cat", "large cat"), ("red house", "nothing")]
    )
    assert main(["similarity", "score", measure, str(pairs)]) == 0
    assert capsys.readouterr().out.split() == [f"{value:.3f}" for value in expected]
    assert main(["similarity", "score", measure, str(pairs), "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["score"] for answer in answers] == expected.tolist()
    assert answers[0]["alignments"][0]["second"] == 0


def test_evaluate_prints_correlations_of_sets_all_and_mean(
    measure: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["similarity", "evaluate", measure, *files, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer["sets"]) == {"pairs0.txt", "pairs1.txt"}
    assert main(["similarity", "evaluate", measure, *files]) == 0
    rows = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert rows["ALL"] == f"{answer['all']:.4f}"
    assert rows["mean"] == f"{answer['mean']:.4f}"


def test_train_without_vectors_uses_surface_metrics(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "surface.safetensors"
    assert main(["similarity", "train", *files, "--output", str(path)]) == 0
    assert "10 features, 120 pairs" in capsys.readouterr().out
    assert Similarity.load(path).words is None


@pytest.mark.parametrize(
    ("extra", "code", "problem"),
    [
        (["--pairs", "more.txt"], 2, "as many --scores as --pairs"),
        (["--pairs", "none.txt", "--scores", "none.txt"], 1, "none.txt"),
        (["--words", "none.safetensors"], 1, "got 'No such file or directory' at none.saf"),
        (["--highest", "3"], 1, "from 0 to 3"),
        (["--highest", "-1"], 2, "'--highest'"),
        (["--pairs", "one.txt", "--scores", "word.txt"], 1, "number, at word.txt:1, got 'x': cor"),
        (["--pairs", "one.txt", "--scores", "nan.txt"], 1, "number, at nan.txt:1, got 'nan': cor"),
        (["--pairs", "nan.txt", "--scores", "nan.txt"], 1, "tab between them, at nan.txt:1"),
        (["--output", "no/m.safetensors"], 1, "there is no folder"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    extra: list[str],
    code: int,
    problem: str,
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, line in (("one", "a cat\ta dog"), ("word", "x"), ("nan", "nan")):
        (tmp_path / f"{name}.txt").write_text(f"{line}\n")
    output = ["--output", "m.safetensors"]
    assert main(["similarity", "train", *files, *output, *extra]) == code
    assert problem in capsys.readouterr().err
    assert not list(tmp_path.glob("*.safetensors"))
