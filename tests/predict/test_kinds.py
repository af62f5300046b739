"""Collections of every kind of models, in every form of files that it has."""

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from lpcfg.base.errors import InputError
from lpcfg.base.executors import Processes
from lpcfg.kinds.constituency import model as constituency
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies.model import to_bundle
from lpcfg.kinds.kind import Kind
from lpcfg.kinds.registry import all_kinds, kind_named, load_model
from lpcfg.kinds.tags.train import Config, estimator_of, train_and_publish
from lpcfg.predict.forms import Form
from lpcfg.predict.run import MANIFEST, find, run
from lpcfg.predict.tasks import PredictChunk, outputs_of
from lpcfg.store.versions import publish
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train
from tests import small_models, toy_kind
from tests.kinds.dependencies import small
from tests.predict.small_runs import WORDS, Killed, Noting, predict, published, rows, run_by, spec

TEXT = "The dog saw a cat. Anna slept!\n\nPeter saw the man in the park."
MODELS = {"constituency": "small", "dependencies": "dep", "tags": "tags", "length": "length"}


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    toy_kind.register(monkeypatch)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Publish a model of every kind."""
    folder = tmp_path_factory.mktemp("store")
    config = Config(estimator_of("spectral", states=4))
    train_and_publish(small_models.SMALL, config, store=folder, name="tags", dev={})
    publish(folder, "dep", to_bundle(small.model(), facts={}, card=""))
    toy_kind.publish_length(folder)
    return published(folder)


def text_file(folder: Path, text: str = TEXT) -> Path:
    (folder / "a.txt").write_text(text)
    return folder / "a.txt"


def answers(store: str, model: str, text: str = TEXT) -> tuple[Kind[Any, Any, Any], list[Any]]:
    """Ask a model directly."""
    loaded = load_model(model, store)
    sentences = loaded.segmenter.sentences_of(text)
    return loaded.kind, list(loaded.predict(sentences, loaded.kind.options()))


def test_every_kind_has_a_model_here() -> None:
    assert {kind.name for kind in all_kinds()} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_what_the_model_answers(name: str, store: str, tmp_path: Path) -> None:
    kind, found = answers(store, MODELS[name])
    asked = spec(store, tmp_path / "out", MODELS[name])
    summary, _ = predict(asked, text_file(tmp_path))
    assert (summary.failures, summary.progress.sentences) == (0, 3)
    written = rows(tmp_path / "out" / "trees" / "a.txt.jsonl")
    for row, answer in zip(written, found, strict=True):
        start, end = answer.sentence.start, answer.sentence.end
        about = {"id": f"a.txt:{start}", "document": "a.txt", "start": start, "end": end}
        told = {"status": answer.status, "reason": answer.reason, "model": asked.hash}
        assert row == about | told | json.loads(json.dumps(kind.row(answer)))
    (document,) = json.loads((tmp_path / "out" / MANIFEST).read_text())["documents"]
    assert sum(document["counts"].get(one.status, 0) > 0 for one in found) == 3


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chunk", [1 << 18, 20])
def test_parquet_has_the_same_rows_as_json_lines(
    name: str, chunk: int, store: str, tmp_path: Path
) -> None:
    for output in ("json", "parquet"):
        asked = spec(store, tmp_path / output, MODELS[name], output=output, chunk=chunk)
        _, tasks = predict(asked, text_file(tmp_path, f"{TEXT}\n"))
        assert any(isinstance(task, PredictChunk) for task in tasks) is (chunk == 20)
    table = pyarrow.parquet.read_table(tmp_path / "parquet" / "trees" / "a.txt.parquet")
    columns = set(kind_named(name).columns)
    written = rows(tmp_path / "json" / "trees" / "a.txt.jsonl")
    assert columns <= set(table.column_names) == set(written[0])
    assert table.to_pylist() == written


FORMS = [
    (name, form)
    for name in ("constituency", "dependencies", "tags")
    for form, ending in kind_named(name).forms.items()
    if ending
]


@pytest.mark.parametrize(("name", "form"), FORMS)
@pytest.mark.parametrize("chunk", [1 << 18, 20])
def test_text_forms_hold_what_the_kind_writes(
    name: str, form: str, chunk: int, store: str, tmp_path: Path
) -> None:
    kind, found = answers(store, MODELS[name])
    asked = spec(store, tmp_path / "out", MODELS[name], output=form, chunk=chunk)
    predict(asked, text_file(tmp_path))
    written = (tmp_path / "out" / "trees" / f"a.txt.{kind.forms[form]}").read_text()
    named = [[f"sent_id = a.txt:{one.sentence.start}"] for one in found]
    texts = [
        kind.text(one, form, kind.options(), told) for one, told in zip(found, named, strict=True)
    ]
    assert written == "".join(f"{text}\n" for text in texts)
    if form == "conllu":
        assert [one.text for one in conllu.read_string(written)] == [
            *("The dog saw a cat.", "Anna slept!", "Peter saw the man in the park.")
        ]


def test_a_sentence_without_words_has_failed_in_every_form(store: str, tmp_path: Path) -> None:
    path = text_file(tmp_path, "Anna slept .\n\nAnna slept .\n")
    for name, model in MODELS.items():
        kind = kind_named(name)
        for output in outputs_of(kind):
            out = tmp_path / f"{name}-{output}"
            summary, _ = predict(spec(store, out, model, output=output), path, form=Form.TOKENS)
            assert (summary.failures, summary.progress.sentences) == (0, 3)
            (document,) = json.loads((out / MANIFEST).read_text())["documents"]
            assert document["counts"]["failed"] == 1


def test_options_of_the_kind_are_taken_whole(store: str, tmp_path: Path) -> None:
    path = text_file(tmp_path, "Anna slept.")
    asked = spec(store, tmp_path / "out", "length", options={"unit": "letters", "least": 3})
    predict(asked, path)
    (row,) = rows(tmp_path / "out" / "trees" / "a.txt.jsonl")
    assert row["number"] == len("Annaslept.")
    kept = json.loads((tmp_path / "out" / MANIFEST).read_text())["options"]
    assert kept == asked.recorded()
    assert {"unit": "letters", "least": 3}.items() <= kept.items()
    with pytest.raises(InputError, match=r"expected options among unit, least, got 'k'"):
        spec(store, tmp_path / "out", "length", options={"k": 3})


@pytest.mark.parametrize(
    ("model", "output", "told"),
    [
        ("dep", "ptb", "json, parquet, conllu as the form of files of a dependency model, got ptb"),
        ("small", "svg", "json, parquet, ptb, conllu as the form of files of a constituency model"),
    ],
)
def test_a_form_that_the_kind_lacks_is_refused(
    model: str, output: str, told: str, store: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"expected {told}"):
        spec(store, tmp_path, model, output=output)


def test_tags_are_refused_by_a_kind_that_takes_none(store: str, tmp_path: Path) -> None:
    path = text_file(tmp_path, "Anna/NNP slept/VBD\n")
    for model, failures in (("small", 0), ("tags", 0), ("dep", 1)):
        summary, _ = predict(spec(store, tmp_path / model, model), path, form=Form.TAGGED)
        assert summary.failures == failures
    (told,) = rows(tmp_path / "dep" / "failures.jsonl")
    assert told["reason"].startswith("expected tokens without tags, got some")


def test_sentences_are_cut_as_the_models_language_has_it(store: str, tmp_path: Path) -> None:
    text = "Der Termin ist am 3. Oktober bei Hrn. Müller bzw. Frau Klein. "
    config = TrainingConfig(members=(member("counts"),), language="german")
    model, _ = train(small_models.SMALL, config)
    publish(store, "german", constituency.to_bundle(model, facts={}, card="# German\n"))
    for chunk in (1 << 18, 200):  # whole, and cut inside of a paragraph, where a sentence ends
        path = text_file(tmp_path, text * 20)
        out = tmp_path / f"out{chunk}"
        predict(spec(store, out, "german", chunk=chunk), path)
        written = rows(out / "trees" / "a.txt.jsonl")
        assert [path.read_text()[row["start"] : row["end"]] for row in written] == [
            text.strip()
        ] * 20


# Folders that an earlier version has begun --------------------------------------------------------


def begun_before(store: str, folder: Path, path: Path, **options: object) -> None:
    """Leave what the version before left of a document: one part of two, without `k`."""
    asked = spec(store, folder, chunk=60)
    executor = Noting(1)
    with pytest.raises(Killed):
        run(asked, find([str(path)], None, asked.out), lambda: executor, lambda _: None, mix=False)
    for name in [folder / MANIFEST, *folder.rglob(".work/*/*.json")]:
        kept = json.loads(name.read_text())
        assert kept["options"].pop("k") == 1
        assert kept["options"].pop("objective") == "default"
        kept["options"] |= {"objective": "default", "rescore": True, **options}
        name.write_text(json.dumps(kept))


def test_a_folder_of_the_version_before_is_resumed(store: str, tmp_path: Path) -> None:
    path = text_file(tmp_path, f"{WORDS}\n\n{WORDS}")
    begun_before(store, tmp_path / "out", path)
    _, tasks = predict(spec(store, tmp_path / "out", chunk=60), path)
    assert [task.chunk.index for task in tasks if isinstance(task, PredictChunk)] == [1]
    assert len(rows(tmp_path / "out" / "trees" / "a.txt.jsonl")) == 2


def test_other_options_of_the_version_before_are_refused(store: str, tmp_path: Path) -> None:
    path = text_file(tmp_path, f"{WORDS}\n\n{WORDS}")
    begun_before(store, tmp_path / "out", path, rescore=False)
    with pytest.raises(InputError, match=r"found rescore False, not True: choose another folder"):
        predict(spec(store, tmp_path / "out"), path)


def test_processes_answer_for_every_kind(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    for model in ("small", "dep", "tags"):  # the toy kind is known in this process alone
        asked = spec(store, tmp_path / model, model, chunk=100)
        summary = run_by(asked, partial(Processes, 2), folder)
        assert (summary.failures, summary.progress.sentences) == (0, 18)
