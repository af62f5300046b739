"""Benchmarks run, and decode what they say they decode."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import corpora, estimators, spectral_tables, tagging, total_variation, variants
from benchmarks.environment import ROOT
from benchmarks.estimators import CLIMBING, DEFAULT, LATENT
from benchmarks.page import put
from benchmarks.spectral_tables import DIVIDED, SIGNED, VARIANTS, WHOLE, Signed
from benchmarks.variants import EXPERIMENTS

from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import sentence_from_tree
from lpcfg.trees.brackets import parse_tree
from tests import small_models
from tests.small_models import SMALL


def flipped(model: Model) -> Model:
    """Return the same model with the other sign, so that p(x) < 0 always."""
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
        sentence = sentence_from_tree(tree)
        (found,) = parser.predict([sentence])
        assert signed.tree(sentence, magnitudes=True) == found.parses[0].tree


def test_only_undivided_marginals_depend_on_the_sign_of_the_probability() -> None:
    model = small_models.spectral()
    other = flipped(model)
    one, two = Signed(model, Parser(model)), Signed(other, Parser(other))
    sentences = [sentence_from_tree(tree) for tree in small_models.trees()]
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


@pytest.fixture
def learnable(data: Path) -> Path:
    """Write a treebank large enough for some trees to be held out."""
    bank = data / "small" / "train.mrg"
    bank.write_text(SMALL.read_text(encoding="utf-8") * 8, encoding="utf-8")
    return data


def test_estimators_fill_their_place_in_a_file(
    learnable: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = learnable / "results.md"
    page.write_text("<!-- estimators: begin -->\n<!-- estimators: end -->\n", encoding="utf-8")
    arguments = ["--data", str(learnable), "--banks", "small", "--states", "2", "--climb", "2"]
    more = ["--every", "3", "--json", "--write", str(page)]
    monkeypatch.setattr("sys.argv", ["estimators", *arguments, *more])
    monkeypatch.setattr(estimators, "MOST_STEPS", 3)
    estimators.main()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    scored = [one for one in records if one["measured"] == "estimator"]
    assert [one["estimator"] for one in scored] == ["counts", *LATENT, DEFAULT]
    assert {one["sentences"] for one in scored} == {22}
    assert all(one["f1_predicted"] > 80 and one["bytes"] > 0 for one in scored)
    assert scored[0]["own_cpu_seconds"] <= scored[0]["cpu_seconds"]
    climbed = records[len(scored) :]
    assert [one["estimator"] for one in climbed] == ["spectral", *CLIMBING]
    assert [one["steps"] is None for one in climbed] == [True, False, False]
    assert all(0 <= one["steps"] <= 3 for one in climbed[1:])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!-- estimators: begin -->\n`OMP_NUM_THREADS=")
    row = next(one for one in scored if one["estimator"] == "pivot+em")
    assert f"| pivot+em | 2 | {row['f1_predicted']:.2f} / {row['f1_gold']:.2f} |" in text


def test_taggers_fill_their_place_in_a_file(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = data / "results.md"
    page.write_text("<!-- tagging: begin -->\n<!-- tagging: end -->\n", encoding="utf-8")
    arguments = ["--data", str(data), "--banks", "small", "--states", "2", "--every", "4"]
    monkeypatch.setattr("sys.argv", ["tagging", *arguments, "--json", "--write", str(page)])
    monkeypatch.setattr(tagging, "ESTIMATORS", ("pivot+em",))
    tagging.main()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["measured"] for one in records] == ["tagger"] * 3 + ["parser"] * 3
    assert all(one["neighbours"]["accuracy"] > 97 for one in records[:3])
    assert all(one["sentences"] == 16 and one["tags_right"] > 90 for one in records[3:])
    text = page.read_text(encoding="utf-8")
    assert f"| pivot+em | 2 | {records[2]['words_alone']['accuracy']:.2f} (0.0)" in text


def test_variants_fill_their_place_in_a_file(
    learnable: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = learnable / "results.md"
    page.write_text("<!-- variants: begin -->\n<!-- variants: end -->\n", encoding="utf-8")
    text = learnable / "text.txt"
    text.write_text("The dog sang. Anna saw the park. Colourless green ideas.", encoding="utf-8")
    arguments = ["--data", str(learnable), "--banks", "small", "--states", "4", "--symbols", "1"]
    more = ["--steps", "10", "--every", "8", "--text", str(text), "--json", "--write", str(page)]
    monkeypatch.setattr("sys.argv", ["variants", *arguments, *more])
    variants.main()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {name: [one for one in records if one["experiment"] == name] for name in EXPERIMENTS}
    assert [len(one["f1"]) for one in found["em-steps"]] == [1]
    assert [one["grammar"] for one in found["markovized"]] == ["v = 1, h = 0", "v = 2, h = 1"]
    gold, parsed = found["semi-supervised"]
    assert (gold["trees"], 1 <= parsed["trees"] <= 2) == (0, True)
    before, after = found["states"]
    assert after["held_out_f1"] >= before["held_out_f1"]
    assert "| m = 4 |" in page.read_text(encoding="utf-8")


def test_parents_labels_come_off_again() -> None:
    for tree in small_models.trees():
        assert variants.without_parents(variants.with_parents(tree)) == tree
    tree = parse_tree("(S (NP (DT the) (NN dog)) (VP (VBD sang)))")
    assert str(variants.with_parents(tree)) == (
        "(S^ROOT (NP^S (DT the) (NN dog)) (VP^S (VBD sang)))"
    )


def test_a_page_without_the_marks_is_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("by hand\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="expected the lines `<!-- estimators: begin -->`"):
        put(page, "estimators", "figures")
    assert page.read_text(encoding="utf-8") == "by hand\n"


def test_the_papers_em_takes_nineteen_times_as_long_as_spectral() -> None:
    """NAACL 2013, section 4.2: "a factor of almost 19", for m = 32."""
    em, spectral = (estimators.PAPER_MINUTES[name][32] for name in ("em", "spectral"))
    assert 18.5 < em / spectral < 19


@pytest.mark.parametrize(
    ("tasks", "workers", "expected"),
    [
        ([2.0, 2.0, 2.0, 2.0], 1, 10.0),  # 2 s until it starts, then one after the other
        ([2.0, 2.0, 2.0, 2.0], 2, 6.0),
        ([1.0, 1.0, 8.0], 3, 10.0),  # nobody helps with the longest
        ([8.0, 1.0, 1.0], 2, 10.0),
    ],
)
def test_a_simulated_run_ends_with_its_last_worker(
    tasks: list[float], workers: int, expected: float
) -> None:
    assert corpora.makespan(tasks, workers, 2.0, 0.0) == expected


def test_a_simulated_coordinator_hands_out_one_task_at_a_time() -> None:
    """A thousand workers do tasks of 1 s no faster than they are handed out."""
    took = corpora.makespan([1.0] * 1000, 1000, 0.0, 0.01)
    assert took == pytest.approx(1000 * 0.01 + 1.0)


def test_the_total_variation_printed_is_that_of_the_readme(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Theorem 8, with nothing but commands: it falls as one over the root of the sample."""
    monkeypatch.setattr(sys, "argv", ["total_variation"])
    total_variation.main()
    printed = re.findall(r"([\d,]+) trees: ([\d.]+)\n", capsys.readouterr().out)
    counts, distances = zip(*printed, strict=True)
    assert counts == ("1,000", "10,000", "100,000")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    told = "`python -m benchmarks.total_variation` prints {}, {} and {} for {}, {} and {} trees."
    assert told.format(*distances, *counts) in readme
    # Slopes of five other seeds lay between -0.51 and -0.62.
    slope = np.polyfit(np.log([1_000, 10_000, 100_000]), np.log([*map(float, distances)]), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.15)


def test_the_total_variation_is_measured_as_the_example_says() -> None:
    example = (ROOT / "examples" / "recursive.toml").read_text(encoding="utf-8")
    recipe = " ".join(re.sub(r"^#|\\$", "", line) for line in example.splitlines())
    assert f"--name sampled {total_variation.OPTIONS} lpcfg" in " ".join(recipe.split())
