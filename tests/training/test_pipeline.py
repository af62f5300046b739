"""Training end to end: what comes out, what is reported, and that a kill leaves nothing behind."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base import executors
from lpcfg.base.errors import StoreError, TrainingError, TreebankError
from lpcfg.kinds.constituency.brackets import evaluate
from lpcfg.kinds.constituency.model import Model, from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence
from lpcfg.store.versions import list_models, load
from lpcfg.training.config import Member, TrainingConfig, config_of, member
from lpcfg.training.data import treebank
from lpcfg.training.data.treebank import read_forest
from lpcfg.training.estimators import registry as estimators
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.registry import ESTIMATORS, Estimator
from lpcfg.training.pipeline import train, train_and_publish
from lpcfg.training.summary import unseen
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize

SMALL = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
COUNTS = TrainingConfig(members=(member("counts"),))


def written(folder: Path, text: str, name: str = "bank.mrg") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def tensors(model: Model) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    bundle = to_bundle(model, facts={}, card="", exact=True)
    arrays = {k: (a.dtype.str, a.shape, a.tobytes()) for k, a in bundle.tensors.items()}
    return {**arrays, "grammar": (json.dumps(bundle.grammar), (), b"")}


def test_a_model_has_its_treebanks_grammar_and_a_fallback() -> None:
    model, _ = train(SMALL, COUNTS)
    forest = read_forest(SMALL, horizontal=1)
    assert model.grammar.symbols == forest.symbols
    assert model.lexicon.words == forest.words
    assert model.members == ()
    assert model.horizontal == 1
    plain, _ = train(SMALL, TrainingConfig(horizontal=0, members=COUNTS.members))
    assert plain.fallback is None
    assert model.fallback is not None
    assert model.fallback.grammar.symbols == plain.grammar.symbols
    assert model.fallback.grammar.rules.tolist() == plain.grammar.rules.tolist()
    assert model.fallback.grammar.entries.tolist() == plain.grammar.entries.tolist()
    np.testing.assert_array_equal(model.fallback.coarse.parent, plain.coarse.parent)
    np.testing.assert_array_equal(model.fallback.context.before, plain.context.before)


@pytest.mark.parametrize("workers", [2, 3])
def test_the_model_does_not_depend_on_the_number_of_workers(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    alone, report = train(SMALL, COUNTS)
    monkeypatch.setattr(treebank, "_CHUNK", 1 << 10)
    monkeypatch.setattr(executors, "ENOUGH", 1)
    together, same_report = train(SMALL, COUNTS, workers=workers)
    assert tensors(together) == tensors(alone)
    assert same_report.treebank == report.treebank


def test_the_report_says_what_was_learned_from_what() -> None:
    _, report = train(SMALL, COUNTS, dev=SMALL)
    forest = read_forest(SMALL)
    told = json.loads(json.dumps(report.as_json()))
    assert told["treebank"]["fingerprint"] == forest.fingerprint
    assert told["sizes"]["trees"] == forest.n_trees == told["dev"]["trees"]
    assert told["sizes"]["tokens"] == told["dev"]["tokens"] == int(forest.is_leaf.sum())
    assert told["dev"]["unseen_rules"] == 0
    names = [stage["name"] for stage in told["stages"]]
    assert names[:3] == ["read", "read dev", "grammar and lexicon"]
    assert told["stages"][0]["items"] == forest.n_trees
    text = report.text()
    for expected in (f"trees  .*{forest.n_trees}", "estimator  counts", "\nread  ", "\nall  "):
        assert re.search(expected, text), expected


@pytest.mark.parametrize("exact", [False, True])
def test_scores_on_dev_are_those_of_the_model_as_it_is_stored(tmp_path: Path, exact: bool) -> None:
    config = TrainingConfig(exact=exact, members=(member("spectral", states=4),))
    with executors.Pool(2) as beside:
        _, report = train_and_publish(
            SMALL, config, store=tmp_path, name="small", dev=SMALL, pool=beside
        )
    assert report.dev is not None
    parser = Parser.load("small", tmp_path)
    pairs = []
    for gold in filter(None, map(normalize, read(SMALL))):
        (found,) = parser.parse([Sentence(tuple(gold.tokens()), forms=tuple(gold.tokens()))])
        pairs.append((gold, found.parses[0].tree))
    expected = evaluate(pairs).as_dict()
    assert {key: report.dev[key] for key in expected} == expected
    assert expected["sentences"] == 64
    assert expected["f1"] > 90  # the very trees it was trained on
    assert "\n  f1 " in report.text()


def test_a_published_model_comes_back_with_its_configuration(tmp_path: Path) -> None:
    config = TrainingConfig(seed=3, licence="CC0", exact=True, members=(member("counts"),))
    reference, report = train_and_publish(SMALL, config, store=tmp_path, name="small")
    assert str(reference) == "small@1"
    stored = load("small", tmp_path)
    facts = stored.manifest["facts"]
    assert isinstance(facts, Mapping)
    fingerprint = read_forest(SMALL).fingerprint
    assert facts["treebank"] == {"fingerprint": fingerprint, "licence": "CC0", "left_out": []}
    configuration = facts["configuration"]
    configuration["members"] = [
        {key: value for key, value in one.items() if value is not None}
        for one in configuration["members"]
    ]
    assert config_of(configuration) == config
    model, _ = train(SMALL, config)
    assert tensors(from_bundle(stored)) == tensors(from_bundle(to_bundle(model, facts={}, card="")))
    assert "Licence of the treebank: CC0." in stored.card
    assert report.stages[-1].name == "publish"
    assert str(train_and_publish(SMALL, config, store=tmp_path, name="small")[0]) == "small@2"


@dataclass(frozen=True)
class Seeded:
    factor: float = 1.0


def _seeded(inputs: EstimatorInputs, settings: Seeded) -> tuple[object, dict[str, object]]:
    with inputs.stages.stage("draw"):
        tables, facts = ESTIMATORS["counts"].estimate(inputs, None)
    return tables, {**facts, "drawn": inputs.seed * settings.factor}


def test_members_share_one_grammar_and_have_seeds_and_stages_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {**ESTIMATORS, "seeded": Estimator(Seeded, _seeded)}
    monkeypatch.setattr(estimators, "ESTIMATORS", known)
    members = (member("seeded"), Member("seeded", Seeded(2.0), seed=40), member("counts"))
    model, report = train(SMALL, TrainingConfig(seed=5, members=members))
    assert len(model.members) == 3
    assert all(one.grammar is model.grammar for one in model.members)
    assert [dict(one) for one in report.members] == [
        {"estimator": "seeded", "seed": 5, "drawn": 5.0},
        {"estimator": "seeded", "seed": 40, "drawn": 80.0},
        {"estimator": "counts", "seed": 7},
    ]
    names = [stage.name for stage in report.stages]
    assert names == ["read", "grammar and lexicon", "tagger", "member 1 draw", "member 2 draw"]


@pytest.mark.parametrize("estimator", ["counts", "spectral"])
@pytest.mark.parametrize(
    ("text", "trees"),
    [
        ("(S (NP (D the) (N end)) (VP (V is) (A near)))", 1),
        ("(X yes) (NP (N dogs)) (X no)", 3),
        ("(S (N dogs) (V bark))" * 30, 30),
        ("(S (N a) (V b)) (S (N a) (V c)) (S (N a) (VP (V b) (N a)))", 3),
        ("(NP dogs) (S (NP cats) (VP (V see) (NP (D the) (N dogs))))", 2),
        ("(S " * 400 + "(N a)" + ")" * 400, 1),
    ],
    ids=["one tree", "one-word trees", "equal trees", "N has one word", "NP is both", "deep"],
)
def test_small_and_odd_treebanks_train(
    tmp_path: Path, estimator: str, text: str, trees: int
) -> None:
    config = TrainingConfig(members=(member(estimator),))
    reference, report = train_and_publish(
        written(tmp_path, text), config, store=tmp_path, name="odd"
    )
    assert report.sizes["trees"] == trees
    model = from_bundle(load(str(reference), tmp_path))
    assert float(model.coarse.c_one.sum()) == pytest.approx(1.0)
    assert len(model.members) == (estimator != "counts")


def test_rules_of_style_change_what_is_learned_and_are_recorded(tmp_path: Path) -> None:
    bank = written(tmp_path, "(HEADING (NP (NN rain)))\n(S (NP (NN rain)) (VP (VBZ falls)))\n")
    plain, _ = train(bank, COUNTS)
    styled, report = train(bank, replace(COUNTS, style=("titles",)))
    assert "HEADING|NP|NN" in plain.grammar.symbols
    assert not [symbol for symbol in styled.grammar.symbols if "HEADING" in symbol]
    assert report.as_json()["configuration"]["style"] == ("titles",)


def test_words_of_another_language_are_told_of(tmp_path: Path) -> None:
    text = "(S (NP (D la) (N casa)) (VP (V es) (PP (P de) (NP (D los) (N que)))))\n"
    told: list[str] = []
    for language in ("english", "spanish"):
        config = replace(COUNTS, language=language)
        bank = written(tmp_path, text * 100)
        train_and_publish(bank, config, store=tmp_path / "store", name="casa", note=told.append)
    assert told == ["the words look like spanish, not english: train with --language spanish"]


def test_an_empty_treebank_publishes_nothing(tmp_path: Path) -> None:
    traces = written(tmp_path, "(S (NP (-NONE- *)))")
    with pytest.raises(TrainingError, match="expected at least one tree with words"):
        train_and_publish(traces, COUNTS, store=tmp_path / "store", name="none")
    assert list_models(tmp_path / "store") == []


def test_words_and_rules_unseen_in_training_are_counted(tmp_path: Path) -> None:
    train_bank = written(tmp_path, "(S (N dogs) (V bark)) (S (N dogs) (VP (V see) (N cats)))")
    dev_bank = written(
        tmp_path, "(S (N cats) (V meow)) (S (N dogs) (V bark)) (Q (V see) (N cows))", "dev.mrg"
    )
    assert unseen(read_forest(dev_bank), read_forest(train_bank)) == {
        "trees": 3,
        "tokens": 6,
        "unseen_words": 2,  # meow and cows
        "unseen_rules": 1,  # Q → V N
        "unseen_symbols": 1,
        "trees_with_unseen_rules": 1,
        "labels": ["Q"],
    }


# The child trains, says on stdout which stage begins, and stands still in the one it is told.
CHILD = """
import sys, time
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train_and_publish

def progress(stage, done, total):
    if stage == sys.argv[3]:
        print("in", stage, flush=True)
        time.sleep(600)

if __name__ == "__main__":
    config = TrainingConfig(members=(member("spectral"),))
    trees, store = sys.argv[1:3]
    train_and_publish(trees, config, store=store, name="m", dev=trees, progress=progress)
"""


@pytest.mark.parametrize("stage", ["read", "decomposition", "evaluate on dev", "publish"])
def test_a_training_killed_in_any_stage_leaves_no_version(tmp_path: Path, stage: str) -> None:
    store = tmp_path / "store"
    command = [sys.executable, "-c", CHILD, str(SMALL), str(store), stage]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == f"in {stage}\n"
        child.kill()
        assert child.wait(timeout=30) == -signal.SIGKILL
    assert list_models(store) == []
    reference, _ = train_and_publish(SMALL, COUNTS, store=store, name="m")
    assert reference.version == 1


def test_a_wrong_name_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="expected a model name"):
        train_and_publish(tmp_path / "absent.mrg", TrainingConfig(), store=tmp_path, name="Wrong!")


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_an_unwritable_store_is_refused_before_anything_is_read(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot publish m into .*Not a directory"):
        train_and_publish(tmp_path / "absent.mrg", COUNTS, store=tmp_path / place, name="m")


def test_malformed_dev_trees_are_refused_before_anything_is_learned(tmp_path: Path) -> None:
    dev = tmp_path / "dev.mrg"
    dev.write_text("(S (A x)")
    stages: list[str] = []
    with pytest.raises(TreebankError, match=r"dev\.mrg:1:9"):
        train(SMALL, TrainingConfig(), dev=dev, progress=lambda name, *_: stages.append(name))
    assert set(stages) == {"read", "read dev"}
