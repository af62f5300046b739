"""`lpcfg tag` end to end."""

import json
from pathlib import Path

import pytest

from lpcfg.cli import main
from lpcfg.kinds.sentences import Sentence
from lpcfg.kinds.tags.predict import SequenceTagger
from tests.small_models import SMALL


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a store with the model `tags`, made by the command."""
    folder = str(tmp_path_factory.mktemp("tags"))
    options = ["--name", "tags", "--dev", str(SMALL), "--states", "3", "--workers", "1"]
    assert main(["tag", "train", str(SMALL), *options, "--store", folder]) == 0
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["tag", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_text_becomes_words_with_tags(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The dog sang. Anna saw the park.", encoding="utf-8")
    code, out, err = run(capsys, "apply", "tags", str(text), "--store", store)
    assert (code, err) == (0, "")
    assert out == "The/DT dog/NN sang/VBD ./.\nAnna/NNP saw/VBD the/DT park/NN ./.\n"


def test_tokens_become_json_with_probabilities(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("The dog sang .\n\n", encoding="utf-8")
    options = ("--input", "tokens", "--json", "--store", store)
    code, out, err = run(capsys, "apply", "tags", str(tokens), *options)
    assert code == 0
    tagged, failed = map(json.loads, out.splitlines())
    found = SequenceTagger.load("tags", store).tag(Sentence(("The", "dog", "sang", ".")))
    assert [token["tag"] for token in tagged["tokens"]] == list(found.tags)
    assert [token["probability"] for token in tagged["tokens"]] == list(found.probabilities)
    assert tagged["log_probability"] == found.log_probability
    assert (failed["status"], failed["tokens"]) == ("failed", [])
    assert err == f"lpcfg: sentence 2 of {tokens}: failed: the sentence has no words\n"


def test_evaluation_prints_shares_or_json(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "evaluate", "tags", str(SMALL), "--json", "--store", store)
    assert code == 0
    scores = json.loads(out)
    assert scores["accuracy"] > 97
    code, out, _ = run(capsys, "evaluate", "tags", str(SMALL), "--store", store)
    assert code == 0
    assert f"{scores['accuracy']:.2f} %" in out


def test_training_prints_facts_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--name", "one", "--estimator", "counts", "--no-neighbours", "--json")
    code, out, _ = run(capsys, "train", str(SMALL), *options, "--store", str(tmp_path))
    assert code == 0
    facts = json.loads(out)
    assert (facts["name"], facts["version"], facts["estimator"]) == ("one", 1, "counts")
    assert facts["config"]["neighbours"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["train", "absent.mrg", "--name", "x"], 1, "absent.mrg"),
        (["train", str(SMALL), "--name", "x/y"], 1, "x/y"),
        (["train", str(SMALL), "--name", "x", "--states", "0"], 2, "--states"),
        (["apply", "absent"], 1, "absent"),
        (["evaluate", "tags", "absent.mrg"], 1, "absent.mrg"),
    ],
)
def test_bad_input_is_explained(
    arguments: list[str],
    code: int,
    problem: str,
    store: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, out, err = run(capsys, *arguments, "--store", store)
    assert (found, out) == (code, "")
    assert problem in err


def test_a_model_of_constituents_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    store = str(Path(__file__).resolve().parents[2] / "model_store")
    code, _, err = run(capsys, "apply", "en", "--store", store)
    assert code == 1
    assert "expected a tagging model, got en, a constituency model" in err
