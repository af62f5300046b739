"""Models that were sealed after somebody changed them are refused, or can be used."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import mutations

from lpcfg.base.errors import StoreError
from lpcfg.engine.pruned import fine
from lpcfg.kinds.constituency import model as models
from lpcfg.kinds.constituency.model import from_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.dependencies import model as dependency_models
from lpcfg.kinds.sentences import Sentence
from lpcfg.kinds.tags import model as tag_models
from lpcfg.store.files import Bundle
from lpcfg.store.versions import load, publish
from tests import small_models

MUTATIONS = 160
Change = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


@cache
def bundles() -> dict[str, Bundle]:
    return mutations.bundles()


def with_tensor(kind: str, name: str, change: Change) -> Bundle:
    bundle = bundles()[kind]
    return replace(bundle, tensors={**bundle.tensors, name: change(bundle.tensors[name].copy())})


def with_field(kind: str, path: str, value: object) -> Bundle:
    described = json.loads(json.dumps(bundles()[kind].grammar))
    holder, keys = described, path.split(".")
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    return replace(bundles()[kind], grammar=described)


def put(at: int, value: object) -> Change:
    """Put one number into an array."""

    def change(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        array.reshape(-1)[at] = value
        return array

    return change


def test_whole_models_of_every_kind_are_taken_and_answer(tmp_path: Path) -> None:
    for name, bundle in bundles().items():
        reference = publish(tmp_path, name, bundle)
        assert mutations.use(Path(reference.folder)) == "answered"


def test_sealed_mutations_are_refused_or_their_models_answer(tmp_path: Path) -> None:
    """`python -m benchmarks.mutations` tries thousands, in child processes."""
    fates = []
    originals = [Path(publish(tmp_path, *each).folder) for each in bundles().items()]
    for seed in range(MUTATIONS):
        original = originals[seed % len(originals)]
        folder = tmp_path / f"mutated-{seed}" / original.parent.name / "1"
        mutations.write(folder, *mutations.mutated(mutations.read(original), seed))
        fates.append(mutations.use(folder))  # anything but a StoreError fails the test
    assert set(fates) == {"answered", "refused"}
    assert fates.count("refused") > MUTATIONS / 2


TENSORS: list[tuple[str, str, Change, str]] = [
    ("full", "rules", put(0, 10**6), "numbers from 0 to .*, found 1000000 at 0, 0"),
    ("exact", "entries", lambda a: a[[1, 0, *range(2, len(a))]], "expected entries sorted by"),
    ("full", "rules", lambda a: a.astype(np.int64), "a tensor of I32 and any x 3 .* found I64"),
    ("full", "entries", put(0, 0), "preterminals from .*, found 0 at 0, 0"),
    ("full", "entries", put(1, -1), "numbers from 0 to .*, found -1"),
    ("full", "lexicon.word_start", lambda a: a[:62], "I32 and .* numbers, found I32 and 62"),
    ("full", "lexicon.word_start", put(3, 0), "offsets that increase from 0 .*, found 0 after"),
    (
        "full",
        "lexicon.word_start",
        put(0, 1),
        "offsets that increase from 0 to .*, found 1 after 1",
    ),
    ("full", "lexicon.word_terminal", put(0, 9999), "numbers from 0 to .*, found 9999 at 0"),
    ("full", "lexicon.pair_symbol", put(0, 0), "numbers from .*, found 0 at 0"),
    ("full", "lexicon.pair_count", put(0, 0), "numbers from 1 to .*, found 0 at 0"),
    ("full", "lexicon.pair_count", put(0, 10**6), "or more, which its words have"),
    ("full", "lexicon.symbol_count", put(0, 1), "counts of preterminals alone"),
    ("full", "lexicon.symbol_count", put(-1, 1 << 62), "numbers from 0 to .*, found 4611686018"),
    ("full", "lexicon.share", put(0, 0.9), "probabilities with sums of 1, found"),
    ("full", "lexicon.share", put(0, np.nan), "numbers from 0 to 1, found nan at 0, 0"),
    ("full", "lexicon.signature_terminal", put(0, -1), "numbers from 0 to .*, found -1 at 0"),
    ("full", "coarse.q", put(0, 0.0), "numbers from 1e-15 to 1, found 0.0"),
    ("full", "coarse.root", put(0, -0.5), "numbers from 0 to 1, found -0.5"),
    ("full", "context.transition", lambda a: a * 0, "found 0.0 at 0, 0"),
    ("full", "context.before", lambda a: a.T, "a tensor of F32 and"),
    ("full", "members.0.states", put(0, 10**6), "numbers from 1 to .*, found 1000000 at 0"),
    ("full", "members.0.terms", put(0, -1), "numbers from 0 to 2147483647|numbers from 0 to 2.1"),
    ("full", "members.0.parent", put(0, np.inf), "numbers from -1 to 1, found inf at 0"),
    ("full", "members.1.scale", put(0, 1e30), "numbers from 0 to 1e.15, found 1"),
    ("full", "fallback.rules", put(0, -5), "numbers from 0 to .*, found -5"),
    ("full", "tagger.weight", lambda a: a[:7], "tagger.scale`: expected a tensor of F16 and 7"),
    ("full", "tagger.scale", put(0, np.nan), "numbers from 0 to .*, found nan"),
    ("full", "tagger.class", lambda a: a[:1], "a tensor of U16 and 2 numbers, found U16 and 1"),
    ("full", "rescoring.weight", lambda a: a[:3], "as a power of two, got shape"),
    ("full", "rescoring.weight", lambda a: a.astype(np.float16), "I8 and any numbers, found F16"),
    ("full", "rescoring.heads.rank", put(0, 3), "numbers from 0 to 0, found 3 at 0, 0"),
    ("full", "rescoring.heads.rightmost", lambda a: a[:1], "a tensor of U8 and"),
    ("full", "rescoring.hidden.tag", lambda a: a[:-1], "`tag` of the rescoring layer in shape"),
    ("full", "rescoring.vectors", lambda a: a[:1], "a tensor of I8 and 4 x any numbers, found"),
    ("full", "rescoring.vectors.scale", put(0, 1e30), "numbers from 0 to 1000, found"),
    ("tags", "rules", put(1, 0), "rules of right-branching trees|numbers from"),
    ("tags", "members.0.scale", put(0, -1), "numbers from 0 to .*, found -1.0 at 0"),
    ("arcs", "vectors", lambda a: a[1:], "a tensor of I8 and"),
    ("arcs", "members.0.arc.out", lambda a: a[1:], "a tensor of F16 and 24 numbers, found F16"),
    ("arcs", "members.0.layer1.weight", put(5, np.nan), "found nan at"),
    ("arcs", "members.0.table.word", lambda a: a[:2], "table.word`: expected a tensor of F16"),
    ("arcs", "spectral.d", lambda a: a[0], "a tensor of F64 and"),
]


@pytest.mark.parametrize(("kind", "name", "change", "message"), TENSORS)
def test_a_wrong_tensor_is_refused_by_name(
    kind: str, name: str, change: Change, message: str, tmp_path: Path
) -> None:
    publish(tmp_path, "wrong", with_tensor(kind, name, change))
    stored = load("wrong", tmp_path)
    made = {"arcs": dependency_models, "tags": tag_models}.get(kind, models).from_bundle
    with pytest.raises(StoreError, match=message) as told:
        made(stored)
    assert str(told.value).startswith(f"{tmp_path}/wrong/1/")


def test_a_network_whose_scores_may_overflow_is_refused() -> None:
    whole = bundles()["arcs"]
    large = {
        name: np.full_like(array, 6e4) if ".layer" in name or ".arc." in name else array
        for name, array in whole.tensors.items()
    }
    message = "parameters whose scores stay below 1e[+]20, found a bound of"
    with pytest.raises(StoreError, match=message):
        dependency_models.from_bundle(replace(whole, tensors=large))


FIELDS: list[tuple[str, str, object, str]] = [
    ("full", "symbols", ["S", "S"], "at least 1 texts, all different, found 2, 1 of them"),
    ("full", "symbols", "SNV", "a list of texts, found 'SNV'"),
    ("full", "symbols", ["|".join("S" * 1001), "A"], "at most 1000 labels in a chain, found 1001"),
    ("full", "symbols", ["S", "A B"], "no white space, no parentheses, none empty, found 'A B'"),
    ("full", "symbols", ["S", "A||B"], "no white space, no parentheses, none empty, found"),
    ("full", "n_internal", True, "a whole number from 0 to .*, found True"),
    ("full", "n_internal", 1, "tensors.safetensors `lexicon|grammar.json|tensors"),
    ("full", "language", "klingon", "one of english, .*, found 'klingon'"),
    ("full", "horizontal", 2, "a whole number from 0 to 1, found 2"),
    ("full", "members", 3, "`members.2.c_one`: expected a tensor"),
    ("full", "members", 1, "`members.1.c_inf`: expected nothing but"),
    ("full", "members", 10**400, "a whole number from 0 to 1000"),
    ("full", "weights", [1.0], "`weights`: expected 2 weights, found"),
    ("full", "weights", [1.0, 0.0], "expected a weight above 0 for each of 2 members"),
    ("full", "calibration", [[0, 1], [0.5, 0.2]], "never decrease"),
    ("full", "calibration", [[0, 1], [0, None]], "at least 2 lists of numbers"),
    ("full", "usual.longest", [5, 3], "lengths that increase"),
    ("full", "usual.quantiles", [[1], ["x"]], "at least 1 lists of numbers"),
    ("full", "tagger.gamma", 7, "a number from 0 to 1, found 7"),
    ("full", "tagger", None, "`tagger.gamma`: expected this field, found none"),
    ("full", "word_classes", ["x", "x"], "all different"),
    ("full", "rescoring.hash", 1, "hashed as number"),
    (
        "full",
        "rescoring.largest",
        {},
        "`rescoring.largest.weight`: expected this field, found none",
    ),
    ("full", "rescoring.trust", "x", "a number from 0 to 65504, found 'x'"),
    ("full", "rescoring.kind_calibrations", [], "lists of numbers by name, found"),
    ("full", "rescoring.kind_calibrations", {"x": 1}, "2 lists of numbers for `x`, found 1"),
    ("full", "rescoring.kind_calibrations", {"x": [[0, 1], [1]]}, "expected a calibration map"),
    ("full", "rescoring.head_labels", [], "the labels of all symbols, found none of"),
    ("full", "rescoring.words", ["a"], "a tensor of I8 and 1 x any"),
    ("full", "fallback", ["@"], "`fallback.|numbers from 0"),
    ("full", "unheard", 1, "`unheard`: expected nothing but"),
    ("full", "kind", "poems", "of kind `constituency`, found 'poems': name a model that `lpcfg"),
    ("literal", "words", ["a"], "lexicon.word_terminal`: expected"),
    ("arcs", "step", 0, "a number from 1e-12 to"),
    ("arcs", "sharpness", -1.0, "a number from 1e-06 to 1000"),
    ("arcs", "names.word", [1], "`names.word`: expected a list of texts"),
    ("arcs", "relations", ["root"], "`members.0.relation.out`: expected a tensor of F16"),
    ("arcs", "members", 0, "a whole number from 1 to 1000, found 0"),
    ("arcs", "spectral", [], "`spectral.words`: expected this field, found none"),
    ("arcs", "spectral.conditions", True, "an object of numbers, found True"),
    ("arcs", "kind", "constituency", "of kind `dependencies`, found 'constituency'"),
]


@pytest.mark.parametrize(("kind", "path", "value", "message"), FIELDS)
def test_a_wrong_field_is_refused_by_name(
    kind: str, path: str, value: object, message: str
) -> None:
    made = {"arcs": dependency_models, "tags": tag_models}.get(kind, models).from_bundle
    with pytest.raises(StoreError, match=message):
        made(with_field(kind, path, value))


@pytest.mark.parametrize("text", ['{"x": NaN}', '{"x": -Infinity}', '{"x": "\\ud800"}', "[1e999]"])
def test_what_no_answer_can_contain_is_no_json_of_a_version(tmp_path: Path, text: str) -> None:
    publish(tmp_path, "small", bundles()["literal"])
    files = mutations.read(tmp_path / "small" / "1")
    files["grammar.json"] = text.encode()
    folder = tmp_path / "other" / "small" / "1"
    mutations.write(folder, files, json.loads(files["manifest.json"]))
    with pytest.raises(StoreError, match=r"grammar.json: expected (JSON|a JSON object), found"):
        load(str(folder), tmp_path)


@pytest.mark.parametrize("value", [1e999, [[]]])
def test_facts_that_no_answer_can_contain_are_refused(tmp_path: Path, value: object) -> None:
    for _ in range(40 if isinstance(value, list) else 0):
        value = [value]
    publish(tmp_path, "small", bundles()["literal"])
    files = mutations.read(tmp_path / "small" / "1")
    manifest = json.loads(files["manifest.json"])
    manifest["facts"]["dev"] = "HERE"
    folder = tmp_path / "other" / "small" / "1"
    mutations.write(folder, files, manifest)
    text = json.dumps(value).replace("Infinity", "1e999")
    rewritten = (folder / "manifest.json").read_text().replace('"HERE"', text)
    zeroed = (rewritten[:-68] + "0" * 64 + rewritten[-4:]).encode()
    (folder / "manifest.json").write_bytes(mutations.sealed(zeroed))
    with pytest.raises(StoreError, match=r"manifest.json: expected (finite numbers|facts of at)"):
        from_bundle(load(str(folder), tmp_path))


def test_a_member_whose_numbers_overflow_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its posteriors are left out, as those of a member that gives the sentence no probability."""
    model = small_models.spectral()
    sentence = Sentence(("the", "dog", "barked", "."))
    first = fine.kernels.fine_pass

    def overflowing(*given: Any) -> Any:
        total, exponent, item, edge = first(*given)
        return total, exponent, item * np.inf, edge

    (coarse,) = Parser(replace(model, members=())).predict([sentence])
    monkeypatch.setattr(fine.kernels, "fine_pass", overflowing)
    with np.errstate(invalid="ignore"):
        (found,) = Parser(model).predict([sentence])
    assert found.parses[0].tree == coarse.parses[0].tree


def test_a_death_is_told_of_its_own_mutation_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def use(folder: Path) -> str:
        if folder.name == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if folder.name == "raises":
            raise ValueError("odd")
        return "answered"

    monkeypatch.setattr(mutations, "use", use)
    names = ("fine", "dies", "fine", "raises", "dies")
    told = list(mutations.fates([tmp_path / name for name in names], 60))
    assert [one for one, _ in told] == ["answered", "killed", "answered", "raised", "killed"]
    assert told[1][1] == "SIGKILL"
    assert "ValueError: odd" in told[3][1]


def test_members_whose_probabilities_cancel_leave_the_coarse_answer() -> None:
    model = small_models.spectral()
    (member,) = model.members
    both = replace(model, members=(member, replace(member, c_inf=-member.c_inf)))
    sentence = Sentence(("the", "dog", "barked"))  # an odd number of words changes the sign
    (found,) = Parser(both).predict([sentence])
    (coarse,) = Parser(replace(model, members=())).predict([sentence])
    assert found.sign == 1
    assert found.log_probability == coarse.log_probability
