"""Finding the vectors of words for a rescoring layer: stores, names and defaults."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import StoreError, TrainingError
from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.store import versions
from lpcfg.store.versions import publish
from lpcfg.training.config import TrainingConfig
from lpcfg.training.words import OWN, words_of
from tests.small_layers import random_layer
from tests.small_models import spectral

ENGLISH = TrainingConfig()


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Make an empty store, and one beside it with `en`, which has vectors, and `plain` without."""
    monkeypatch.setattr(versions, "BUILT_IN", tmp_path / "nothing is built in")
    model, beside = spectral(), tmp_path / "beside"
    layered = replace(model, rescoring=random_layer(model.grammar))
    publish(beside, "en", to_bundle(layered, facts={}, card=""))
    publish(beside, "plain", to_bundle(model, facts={}, card=""))
    return str(tmp_path / "new"), str(beside)


def test_an_empty_store_takes_the_default_model_beside_it(stores: tuple[str, str]) -> None:
    found = words_of(ENGLISH, stores, "en")
    assert found.model == "en@1"
    assert found.vectors is not None
    np.testing.assert_array_equal(found.vectors.words, ("the", "dog", "cat", "a"))
    assert found.layer is not None
    assert found.layer.vectors is found.vectors
    assert words_of(ENGLISH, stores, "plain", model="en@1").model == "en@1"


def test_the_first_store_with_the_model_decides(stores: tuple[str, str]) -> None:
    model = spectral()
    layered = to_bundle(
        replace(model, rescoring=random_layer(model.grammar, seed=1)), facts={}, card=""
    )
    publish(stores[0], "en", layered)
    publish(stores[0], "en", layered)
    assert words_of(ENGLISH, stores, "en").model == "en@2"
    assert words_of(ENGLISH, stores[::-1], "en").model == "en@1"


def test_the_models_of_the_package_stand_behind_all_stores(
    stores: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert words_of(ENGLISH, stores[:1], "en").layer is None
    monkeypatch.setattr(versions, "BUILT_IN", Path(stores[1]))
    assert words_of(ENGLISH, stores[:1], "en").model == "en@1"
    assert words_of(ENGLISH, stores[:1], "other", model="en@1").model == "en@1"


@pytest.mark.parametrize(
    ("config", "default", "model"),
    [
        (ENGLISH, "en", OWN),  # asked for
        (ENGLISH, "other", None),  # no store has it
        (ENGLISH, "plain", None),  # it has no vectors
        (TrainingConfig(language="german"), "en", None),
        (TrainingConfig(rescoring=None), "en", None),
    ],
)
def test_otherwise_the_words_are_the_treebanks_own(
    config: TrainingConfig, default: str, model: str | None, stores: tuple[str, str]
) -> None:
    found = words_of(config, stores, default, model=model)
    assert (found.layer, found.vectors, found.model, found.texts) == (None, None, "", ())


def test_raw_text_comes_before_the_default_model(stores: tuple[str, str]) -> None:
    assert words_of(ENGLISH, stores, "en", texts=[Path("raw.txt")]).texts == [Path("raw.txt")]
    german = words_of(TrainingConfig(language="german"), stores, "plain", model="en")
    assert german.model == "en@1"  # it was named


def test_a_named_model_without_vectors_or_store_is_refused(stores: tuple[str, str]) -> None:
    with pytest.raises(TrainingError, match="vectors of words, got plain, which has none"):
        words_of(ENGLISH, stores, "en", model="plain")
    with pytest.raises(StoreError, match=r"expected a model `other` in .*new or .*beside"):
        words_of(ENGLISH, stores, "en", model="other")
