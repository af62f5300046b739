"""The plan of a training: which trees each model learns from, and which are held out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.data.held_out import restored
from lpcfg.training.data.treebank import part_of, read_forest, strees_of
from lpcfg.training.pipeline import train
from lpcfg.training.plan import FEWEST, MOST_PARSED, Plan, held_out, spread
from lpcfg.training.rescoring.jackknife import folds_of
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.training.summary import card
from lpcfg.trees.binarize import restore
from lpcfg.trees.brackets import write
from tests.small_models import SMALL

COUNTS = TrainingConfig(members=(member("counts"),), rescoring=None)
LAYER = replace(COUNTS, rescoring=RescoringSettings(folds=5))
CHOOSING = (member("em", patience=1),)


def numbered(folder: Path, count: int) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "bank.mrg"
    path.write_text("".join(f"(S (N w{k}) (V v))" for k in range(count)), encoding="utf-8")
    return path


def is_divided(whole: np.ndarray, *parts: np.ndarray) -> bool:
    return sorted(np.concatenate(parts).tolist()) == whole.tolist()


def test_without_a_layer_few_held_out_trees_are_not_learned_from(tmp_path: Path) -> None:
    forest = read_forest(numbered(tmp_path, 2000))
    plan = Plan.of(forest, replace(COUNTS, held_out=60), 1)
    assert len(plan.held_out) == 60
    assert is_divided(np.arange(2000), plan.final, plan.held_out)
    assert plan.held_out_model.tolist() == plan.final.tolist()
    assert not plan.has_two_models
    assert not plan.has_layer


def test_many_held_out_trees_are_learned_from_in_the_end(tmp_path: Path) -> None:
    forest = read_forest(numbered(tmp_path, 2000))
    plan = Plan.of(forest, COUNTS, 1)
    assert len(plan.held_out) == 200
    assert plan.final.tolist() == list(range(2000))
    assert is_divided(plan.final, plan.held_out_model, plan.held_out)
    assert plan.has_two_models


@pytest.mark.parametrize("config", [COUNTS, LAYER])
def test_trees_by_which_steps_are_chosen_are_not_learned_from(
    tmp_path: Path, config: TrainingConfig
) -> None:
    forest = read_forest(numbered(tmp_path, 2000))
    plan = Plan.of(forest, replace(config, members=CHOOSING), 1)
    assert np.flatnonzero(held_out(forest, 600)).tolist() == plan.held_out.tolist()
    assert is_divided(np.arange(2000), plan.final, plan.held_out)
    assert not plan.has_two_models
    assert plan.has_layer is (config is LAYER)


def test_under_a_layer_the_last_fold_is_held_out(tmp_path: Path) -> None:
    forest = read_forest(numbered(tmp_path, 1000))
    plan = Plan.of(forest, LAYER, 1)
    assert plan.fold.tolist() == folds_of(forest, np.arange(1000), 5).tolist()
    assert plan.held_out.tolist() == np.flatnonzero(plan.fold == 4).tolist()
    assert plan.final.tolist() == list(range(1000))
    assert is_divided(plan.final, plan.held_out_model, plan.held_out)
    assert len(Plan.of(forest, replace(LAYER, held_out=0), 1).held_out) == 0


def test_of_a_long_last_fold_a_part_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lpcfg.training.plan.MOST_PARSED", 50)
    assert MOST_PARSED > 50
    plan = Plan.of(read_forest(numbered(tmp_path, 1000)), LAYER, 1)
    assert len(plan.held_out) == 50
    assert (plan.fold[plan.held_out] == 4).all()
    assert not (plan.fold[plan.held_out_model] == 4).any()


def test_trees_of_a_parser_have_no_fold(tmp_path: Path) -> None:
    sources = [numbered(tmp_path / "gold", 600), numbered(tmp_path / "parsed", 300)]
    plan = Plan.of(read_forest(sources), LAYER, 1)
    assert plan.charted.tolist() == list(range(600))
    assert (plan.fold[:600] >= 0).all()
    assert (plan.fold[600:] == -1).all()
    assert set(range(600, 900)) <= set(plan.held_out_model.tolist())


def test_a_domain_to_leave_out_has_all_trees_of_its_sources(tmp_path: Path) -> None:
    sources = [numbered(tmp_path / name, 200) for name in ("a", "b", "c")]
    settings = RescoringSettings(domains=("news", "chat", "news"), unfamiliar=("news",))
    config = replace(COUNTS, rescoring=settings)
    [left_out] = Plan.of(read_forest(sources), config, 3).left_out
    assert left_out.domain == "news"
    assert left_out.trees.tolist() == [*range(200), *range(400, 600)]
    assert set(left_out.parsed.tolist()) <= set(left_out.trees.tolist())
    assert Plan.of(read_forest(sources), replace(config, held_out=0), 3).left_out == ()


def test_held_out_runs_are_spread_and_leave_no_trace_in_training(tmp_path: Path) -> None:
    forest = read_forest(numbered(tmp_path, 2000))
    marked = held_out(forest, 600)
    rest, held = part_of(forest, np.flatnonzero(~marked)), restored(forest, np.flatnonzero(marked))
    runs = (*range(300, 366), *range(967, 1034), *range(1633, 1700))
    assert [tree.tokens()[0] for tree in held] == [f"w{k}" for k in runs]
    assert rest.n_trees == 1800
    assert set(rest.words) == set(forest.words) - {tree.tokens()[0] for tree in held}
    together = [write(restore(tree)) for tree in strees_of(rest)] + [write(tree) for tree in held]
    assert sorted(together) == sorted(write(restore(tree)) for tree in strees_of(forest))


def test_at_most_one_tree_in_ten_is_held_out(tmp_path: Path) -> None:
    forest = read_forest(numbered(tmp_path, 2000))
    assert [held_out(forest, most).sum() for most in (0, 60, 1000)] == [0, 60, 200]


def test_too_few_trees_for_a_map_are_all_learned_from(tmp_path: Path) -> None:
    forest = read_forest(numbered(tmp_path, 10 * FEWEST - 1))
    assert not held_out(forest, 600).any()
    model, report = train(SMALL, COUNTS)
    assert model.calibration is None
    assert report.as_json()["held_out"] == {}


@pytest.mark.parametrize(
    ("count", "told"), [(1, "1 tree is too few"), (10, "10 trees are"), (499, "499 trees are")]
)
def test_a_treebank_too_small_to_hold_trees_out_is_said_to_be(
    tmp_path: Path, count: int, told: str
) -> None:
    _, report = train(numbered(tmp_path, count), COUNTS)
    assert report.warning is not None
    assert report.warning.startswith(told)
    assert "probabilities are not calibrated: give at least 500 trees, or adapt" in report.warning
    assert report.as_json()["warning"] == report.warning
    assert f"**Note:** {report.warning}." in card("few", report)


def test_enough_trees_or_none_wanted_are_no_reason_for_a_warning(tmp_path: Path) -> None:
    _, report = train(numbered(tmp_path, 500), COUNTS)
    assert report.held_out["trees"] == FEWEST
    assert report.warning is None
    assert "**Note:**" not in card("enough", report)
    _, report = train(numbered(tmp_path, 10), replace(COUNTS, held_out=0))
    assert report.warning is None


def test_trees_are_spread_over_those_to_choose_from() -> None:
    one = np.zeros(10, np.int32)
    assert spread(np.arange(10, 20), one, 4).tolist() == [10, 12, 15, 17]
    assert spread(np.arange(3), one[:3], 5).tolist() == [0, 1, 2]
    assert spread(np.arange(0), one[:0], 5).tolist() == []


def test_every_source_gives_as_many_trees_where_it_has_them() -> None:
    source = np.array([2] * 10 + [0] * 3 + [1] * 20)
    chosen = spread(np.arange(33), source, 15)
    assert np.bincount(source[chosen]).tolist() == [3, 6, 6]
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert len(spread(np.arange(33), source, 40)) == 33
