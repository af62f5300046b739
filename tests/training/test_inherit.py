"""A new hidden part begins with rows of another layer's."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lpcfg.engine.rescoring.hidden import Hidden
from lpcfg.engine.rescoring.layer import Layer
from lpcfg.engine.rescoring.names import RowNames
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train
from lpcfg.training.rescoring.inherit import SHARE, fits, inherit
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.training.words import VectorSource
from tests.small_layers import TINY, random_hidden, random_layer
from tests.small_models import SMALL


def test_rows_of_the_same_names_are_inherited() -> None:
    start = random_layer(TINY)  # labels S, A and B over tags A and B; ends of words: the, dog
    assert start.hidden is not None
    rows, ends = RowNames(("B", "C"), ("A", "VP"), ("S A B", "S B A")), ("cat", "the", "ing")
    rng = np.random.default_rng(1)
    tables = random_hidden(rng, rows, width=4, dimensions=3, suffixes=len(ends))
    before = tables._replace(**{name: table.copy() for name, table in tables._asdict().items()})
    inherit(tables, rows, ends, start)
    old = Hidden(*(SHARE * table for table in start.hidden))
    expected = (
        (tables.word, old.word),
        (tables.length, old.length),
        (tables.tag, (old.tag[start.rows.tags.index("B")], before.tag[1], old.tag[-1])),
        (tables.suffix, (old.suffix[0], before.suffix[1], old.suffix[1], before.suffix[3])),
        (tables.label, (old.label[start.rows.labels.index("A")], before.label[1], [0] * 4)),
        (tables.rule, (old.rule[start.rows.rules.index("S A B")], before.rule[1], [0] * 4)),
    )
    for found, wanted in expected:
        np.testing.assert_array_equal(found, np.array(wanted, np.float32))


def test_only_a_hidden_part_of_the_same_width_is_inherited() -> None:
    layer = random_layer(TINY)
    assert fits(layer, 4)
    assert not fits(layer, 5)
    assert not fits(None, 4)
    assert not fits(replace(layer, hidden=None), 4)
    with pytest.raises(ValueError, match="got one without"):
        inherit(layer.hidden, layer.rows, (), replace(layer, hidden=None))  # type: ignore[arg-type]


def learned(layer: Layer, width: int) -> tuple[Layer, dict[str, object]]:
    settings = RescoringSettings(folds=2, bits=12, passes=1, width=width, hidden_passes=1)
    config = TrainingConfig(
        sibling_threshold=2,
        held_out=0,
        members=(member("spectral", states=2),),
        rescoring=settings,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.mrg"
        path.write_text(SMALL.read_text(encoding="utf-8") * 2, encoding="utf-8")
        model, report = train(path, config, words=VectorSource(layer=layer, model="other@1"))
    assert model.rescoring is not None
    return model.rescoring, report.rescoring


def test_training_begins_with_the_layer_that_the_vectors_come_from() -> None:
    first, _ = learned(random_layer(TINY), 6)  # of width 4, so that only vectors come from it
    again, report = learned(first, 6)
    assert (report["vectors_from"], report["begins_with"]) == ("other@1", "other@1")
    assert first.hidden is not None
    assert again.hidden is not None
    near = np.abs(again.hidden.word - SHARE * first.hidden.word).mean()
    anew, report = learned(replace(first, hidden=None), 6)
    assert "begins_with" not in report
    assert anew.hidden is not None
    np.testing.assert_array_equal(anew.hidden.word, first.hidden.word)
    assert near < np.abs(first.hidden.word).mean() / 2
