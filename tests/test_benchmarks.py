"""Benchmarks run, and decode what they say they decode."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import spectral_tables
from benchmarks.spectral_tables import DIVIDED, SIGNED, VARIANTS, WHOLE, Signed

from lpcfg.analysis import Options
from lpcfg.measure import sentence_of
from lpcfg.model import Model
from lpcfg.parser import Parser
from tests import small_models
from tests.small_models import SMALL


def flipped(model: Model) -> Model:
    """The same model with the other sign: p(x) < 0 always."""
    (member,) = model.members
    return replace(model, members=(replace(member, c_one=-member.c_one),))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    bank = tmp_path / "small"
    bank.mkdir()
    for name in ("train.mrg", "dev.mrg"):
        (bank / name).write_bytes(SMALL.read_bytes())
    return tmp_path


def test_with_magnitudes_the_benchmark_decodes_as_the_parser_does() -> None:
    model = small_models.spectral()
    parser = Parser(model)
    signed = Signed(model, parser)
    for tree in small_models.trees():
        sentence = sentence_of(tree, "predicted")
        (found,) = parser.parse([sentence], Options())
        assert signed.tree(sentence, magnitudes=True) == found.parses[0].tree


def test_only_undivided_marginals_depend_on_the_sign_of_p() -> None:
    model = small_models.spectral()
    other = flipped(model)
    one, two = Signed(model, Parser(model)), Signed(other, Parser(other))
    sentences = [sentence_of(tree, "predicted") for tree in small_models.trees()]
    for sentence in sentences:
        assert one.tree(sentence, divided=True) == two.tree(sentence, divided=True)
        assert one.tree(sentence, divided=True) == one.tree(sentence)  # p(x) > 0
    assert [one.tree(sentence) for sentence in sentences] != [two.tree(s) for s in sentences]


def test_spectral_tables_fill_their_place_in_a_file(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = data / "results.md"
    page.write_text(
        "before\n<!-- spectral_tables: begin -->\nstale\n<!-- spectral_tables: end -->\nafter\n",
        encoding="utf-8",
    )
    arguments = ["--data", str(data), "--banks", "small", "--states", "2", "--json"]
    monkeypatch.setattr("sys.argv", ["spectral_tables", *arguments, "--write", str(page)])
    spectral_tables.main()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["variant"] for one in records] == [
        "counts, m = 1",
        WHOLE,
        SIGNED,
        DIVIDED,
        *list(VARIANTS)[1:],
    ]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("end -->\nafter\n")
    assert "stale" not in text
    whole = records[1]
    assert f"| {WHOLE} | {whole['f1_predicted']:.2f} / {whole['f1_gold']:.2f} |" in text
    assert f"| moments | {whole['stages']['moments']:.2f} |" in text
