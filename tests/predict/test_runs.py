"""Runs over collections: every document exactly once, whatever it is and whatever happens."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from backports import zstd

from lpcfg.base.errors import InputError, StoreError
from lpcfg.base.executors import Processes
from lpcfg.cli import main
from lpcfg.kinds.dependencies import conllu
from lpcfg.predict.forms import Form
from lpcfg.predict.run import find
from lpcfg.predict.tasks import PredictChunk, PredictDocuments
from lpcfg.trees.brackets import parse_tree
from tests.predict.small_runs import (
    WORDS,
    Killed,
    Noting,
    predict,
    published,
    rows,
    run_by,
    spec,
)

TEXT = "The dog barked. Anna saw the man.\n\nPeter saw the dog in the park."


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return published(tmp_path_factory.mktemp("store"))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Write five documents, one in a folder of its own."""
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.txt").write_text(f"{TEXT} It slept {number} times.")
    (folder / "sub" / "0.txt").write_text("Hello!")
    (folder / ".hidden").write_text("No.")
    return folder


def manifest(out: Path) -> dict[str, object]:
    return json.loads((out / "manifest.json").read_text())


def failures(out: Path) -> list[dict[str, str]]:
    return rows(out / "failures.jsonl")


def seen(out: Path) -> Counter[str]:
    """List the ids of all sentences in all output files."""
    return Counter(row["id"] for path in (out / "trees").rglob("*.jsonl") for row in rows(path))


# What comes in, what comes out --------------------------------------------------------------------


def test_each_input_gets_an_output_with_places_and_probabilities(
    store: str, texts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    summary, _ = predict(spec(store, out), texts)
    names = sorted(str(path.relative_to(out / "trees")) for path in out.rglob("*.txt.jsonl"))
    assert names == [*(f"{n}.txt.jsonl" for n in range(4)), "sub/0.txt.jsonl"]
    found = rows(out / "trees" / "0.txt.jsonl")
    text = (texts / "0.txt").read_text()
    assert [text[row["start"] : row["end"]] for row in found] == [
        *("The dog barked.", "Anna saw the man.", "Peter saw the dog in the park."),
        "It slept 0 times.",
    ]
    for row in found[:3]:
        assert row["id"] == f"0.txt:{row['start']}"
        assert row["status"] == "parsed"
        assert 0 < row["probability"] <= 1
        assert 0 < row["lowest_probability"] <= 1
        assert row["log_probability"] < 0
        assert parse_tree(row["tree"]).label == "S"
        assert row["model"] == spec(store, out).hash
    assert (summary.failures, summary.progress.documents, summary.progress.sentences) == (0, 5, 17)
    assert sorted(path.name for path in out.iterdir()) == [
        *(".done", ".lock", "failures.jsonl", "manifest.json", "trees")
    ]


def test_the_manifest_tells_inputs_options_and_counts(
    store: str, texts: Path, tmp_path: Path
) -> None:
    import hashlib

    out = tmp_path / "out"
    predict(spec(store, out), texts)
    told = manifest(out)
    assert told["options"] == spec(store, out).recorded()
    first = told["documents"][0]  # type: ignore[index]
    content = (texts / "0.txt").read_bytes()
    assert first["name"] == "0.txt"
    assert first["size"] == len(content)
    assert first["sha256"] == hashlib.sha256(content).hexdigest()
    assert first["counts"]["sentences"] == 4
    assert first["counts"]["parsed"] + first["counts"]["partial"] == 4
    assert first["counts"]["seconds"] >= 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"The dog barked.\n"),
        ("a.txt.gz", gzip.compress(b"The dog barked.\n", mtime=0)),
        ("a.txt.zst", zstd.compress(b"The dog barked.\n")),
        ("a.jsonl", b'{"id": "x", "text": "The dog barked."}\n'),
        ("a.conllu", b"".join(b"%d\t%s%s\n" % (k + 1, w, b"\t_" * 8)
                              for k, w in enumerate((b"The", b"dog", b"barked", b".")))),
    ],
    ids=["text", "gzip", "zstd", "json lines", "conllu"],
)  # fmt: skip
def test_inputs_of_all_kinds_give_the_same_tree(
    name: str, content: bytes, store: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    predict(spec(store, tmp_path / "out"), tmp_path / name)
    (row,) = rows(tmp_path / "out" / "trees" / f"{name}.jsonl")
    assert row["tree"] == "(S (NP (DT The) (NN dog)) (VP (VBD barked)) (. .))"


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (Form.LINES, "The dog barked."),
        (Form.TOKENS, "The dog barked ."),
        (Form.TAGGED, "The/DT dog/NN barked/VBD ./."),
    ],
)
def test_lines_are_sentences_with_their_numbers(
    form: Form, line: str, store: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text(f"{line}\n\n{line}\n")
    predict(spec(store, tmp_path / "out"), tmp_path / "a", form=form)
    found = rows(tmp_path / "out" / "trees" / "a.jsonl")
    assert [row["id"] for row in found] == ["a:1", "a:2", "a:3"]
    assert [row["status"] for row in found] == ["parsed", "failed", "parsed"]
    assert [row["start"] for row in found] == [0, len(line) + 1, len(line) + 2]


def test_parquet_goes_in_and_out(store: str, tmp_path: Path) -> None:
    table = pyarrow.table({"name": ["x", "y", "z"], "body": ["The dog barked.", None, "Hello!"]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    for piece in (1 << 18, 1):  # whole, and a row group at a time
        out = tmp_path / f"out{piece}"
        asked = spec(store, out, output="parquet", columns=("body", "name"), chunk=piece)
        summary, tasks = predict(asked, tmp_path / "a.parquet")
        assert (len(tasks) > 1) is (piece == 1)
        found = pyarrow.parquet.read_table(out / "trees" / "a.parquet.parquet").to_pylist()
        assert [row["id"] for row in found] == ["x:0", "z:0"]
        assert str(parse_tree(found[0]["tree"])).startswith("(S (NP (DT The)")
        assert summary.failures == 1
        assert failures(out)[0]["where"] == "row 1"


def test_a_missing_package_is_named_before_anything_is_done(
    store: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"pip install 'lpcfg\[parquet\]'"):
        predict(spec(store, tmp_path / "out", output="parquet"), texts)
    assert not (tmp_path / "out").exists()
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    (texts / "a.zst").write_bytes(zstd.compress(b"Hello!"))
    predict(spec(store, tmp_path / "out"), texts / "a.zst")
    assert "pip install 'lpcfg[zst]'" in failures(tmp_path / "out")[0]["reason"]


@pytest.mark.parametrize(("output", "ending"), [("ptb", "mrg"), ("conllu", "conllu")])
def test_brackets_and_conllu_hold_the_same_trees_in_order(
    output: str, ending: str, store: str, texts: Path, tmp_path: Path
) -> None:
    for piece in (1 << 18, 20):
        out = tmp_path / f"out{piece}"
        predict(spec(store, out, output=output, chunk=piece), texts / "0.txt")
        text = (out / "trees" / f"0.txt.{ending}").read_text()
        if output == "ptb":
            words = [parse_tree(line).tokens() for line in text.splitlines()]
        else:
            words = [
                tuple(row[conllu.FORM] for row in one.words) for one in conllu.read_string(text)
            ]
        assert [" ".join(one) for one in words] == [
            *("The dog barked .", "Anna saw the man .", "Peter saw the dog in the park ."),
            "It slept 0 times .",
        ]


def test_patterns_name_files(store: str, texts: Path, tmp_path: Path) -> None:
    predict(spec(store, tmp_path / "out"), f"{texts}/[12].*")
    found = (tmp_path / "out" / "trees").iterdir()
    assert sorted(path.name for path in found) == ["1.txt.jsonl", "2.txt.jsonl"]


def test_two_inputs_of_one_name_are_refused(texts: Path) -> None:
    with pytest.raises(InputError, match="expected inputs of different names, got"):
        find([str(texts / "0.txt"), str(texts / "sub" / "0.txt")], None, "out")


def test_an_output_folder_inside_the_input_is_no_input(texts: Path, store: str) -> None:
    predict(spec(store, texts / "out"), texts)
    summary, _ = predict(spec(store, texts / "out"), texts)
    assert (summary.progress.documents, summary.progress.skipped) == (0, 5)


# Bad inputs ---------------------------------------------------------------------------------------


def test_bad_inputs_are_listed_and_the_run_goes_on(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.txt").write_text("Hello!")
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "page.txt").write_text("<html><body>No.</body></html>")
    (folder / "torn.txt.gz").write_bytes(gzip.compress(b"Hello! " * 99)[:-9])
    (folder / "torn.txt.zst").write_bytes(zstd.compress(b"Hello! " * 99)[:-3])
    (folder / "some.jsonl").write_text('{"text": "Hello!"}\n{"text": 3}\nno\n')
    (folder / "none.jsonl").write_text("a,b\n1,2\n")
    (folder / "not.parquet").write_text("no")
    (folder / "half.conllu").write_text("1\tHello\n\n1\tHello" + "\t_" * 8 + "\n")
    out = tmp_path / "out"
    code = main(["parse", "small", str(folder), "--out", str(out), "--store", store, "--jobs", "1"])
    shown = capsys.readouterr()
    assert code == 1
    assert re.search(r"9 inputs or parts of them could not be read: .*failures\.jsonl", shown.err)
    assert shown.out == "9 documents, 3 sentences\n"
    found = {(Path(one["input"]).name, one["where"]): one["reason"] for one in failures(out)}
    assert {
        ("latin.txt", ""): "1:4: expected UTF-8, got the byte 0xe9",
        ("page.txt", ""): "expected plain text, got HTML",
        ("torn.txt.gz", ""): "expected a whole compressed file, got a damaged one",
        ("torn.txt.zst", ""): "expected a whole compressed file, got a damaged one",
        ("some.jsonl", "line 2"): "expected an object with a string `text`",
        ("some.jsonl", "line 3"): "expected JSON, got something else",
        ("none.jsonl", ""): "has no line of JSON with a text",
        ("not.parquet", ""): "expected a Parquet file, got something else",
        ("half.conllu", "line 1"): "expected 10 fields between tabs, got 2",
    }.keys() == found.keys()
    assert "expected 10 fields" in found["half.conllu", "line 1"]
    (folder / "latin.txt").write_text("Hello!")
    predict(spec(store, out), folder)
    assert len(failures(out)) == 8


def test_a_long_document_with_a_wrong_byte_fails_whole(store: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"Hello .\n" * 30 + b"\xff\n")
    summary, _ = predict(spec(store, tmp_path / "out", chunk=40), tmp_path / "a", form=Form.TOKENS)
    assert summary.failures == 1
    assert "a:31:1: expected UTF-8" in failures(tmp_path / "out")[0]["reason"]
    assert not (tmp_path / "out" / "trees").exists()


# What is done is not done again -------------------------------------------------------------------


def test_what_is_done_is_skipped_and_what_changed_is_redone(
    store: str, texts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    asked = spec(store, out)
    predict(asked, texts)
    assert predict(asked, texts)[1] == []
    os.utime(texts / "0.txt", (1, 1))  # the same bytes, at another time
    (texts / "1.txt").write_text("Hello!")
    (out / "trees" / "2.txt.jsonl").unlink()
    (out / "trees" / "3.txt.jsonl").write_text("torn")
    (texts / "4.txt").write_text("Hello!")
    summary, (task,) = predict(asked, texts)
    assert isinstance(task, PredictDocuments)
    assert [one.name for one in task.documents] == ["2.txt", "3.txt", "1.txt", "4.txt"]
    assert (summary.progress.documents, summary.progress.skipped) == (4, 2)
    assert len(rows(out / "trees" / "1.txt.jsonl")) == 1
    assert len(manifest(out)["documents"]) == 6  # type: ignore[arg-type]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("most", [0, 1, 7, 20])
def test_a_long_document_goes_on_where_it_was_left(
    packed: bool, most: int, store: str, tmp_path: Path
) -> None:
    text = "\n\n".join(f"{WORDS} It slept {number} times." for number in range(40)).encode()
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(text) if packed else text)
    asked = spec(store, tmp_path / "out", chunk=120)  # about two paragraphs
    with pytest.raises(Killed):
        run_by(asked, lambda: Noting(most), path)
    assert not (tmp_path / "out" / "trees").exists()
    _, tasks = predict(asked, path)
    chunks = [task.chunk.index for task in tasks if isinstance(task, PredictChunk)]
    assert len(tasks) == len(chunks) + 1
    assert chunks == list(range(most, most + len(chunks)))
    predict(spec(store, tmp_path / "whole"), path)
    assert (tmp_path / "out" / "trees" / "a.txt.jsonl").read_bytes() == (
        tmp_path / "whole" / "trees" / "a.txt.jsonl"
    ).read_bytes()
    assert not (tmp_path / "out" / ".work").exists()


def test_other_options_do_not_mix_unless_asked(store: str, texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    predict(spec(store, out), texts / "0.txt")
    other = spec(store, out, options={"objective": "max-product"})
    with pytest.raises(InputError, match=r"found objective default, not max-product: choose"):
        predict(other, texts)
    summary, _ = predict(other, texts, mix=True)
    assert (summary.progress.documents, summary.progress.skipped) == (4, 1)
    objectives = [one["options"]["objective"] for one in manifest(out)["documents"]]  # type: ignore[attr-defined]
    assert Counter(objectives) == {"max-product": 4, "default": 1}


def test_two_runs_do_not_write_into_one_folder(store: str, texts: Path, tmp_path: Path) -> None:
    asked = spec(store, tmp_path / "out")

    class Second(Noting):
        def __init__(self) -> None:
            with pytest.raises(InputError, match="where another run is writing: wait"):
                predict(asked, texts)
            raise Killed

    with pytest.raises(Killed):
        run_by(asked, Second, texts)


# Processes ----------------------------------------------------------------------------------------


def test_processes_that_die_lose_and_double_nothing(
    store: str, texts: Path, tmp_path: Path
) -> None:
    """A worker is killed when its first document is done; another one does the rest."""
    asked = spec(store, tmp_path / "out", chunk=30)
    executor = Processes(1)

    def kill() -> None:
        while not list((tmp_path / "out").rglob("*.part")):
            time.sleep(0.001)
        os.kill(executor._all[0]._process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    summary = run_by(asked, lambda: executor, texts)
    killer.join()
    assert summary.failures == 0
    found = seen(tmp_path / "out")
    assert set(found.values()) == {1}
    assert len(found) == 17


def test_a_killed_run_resumes_without_loss_or_double(store: str, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number:03}.txt").write_text(f"{WORDS}\n\n" * 5)
    command = ["parse", "small", str(folder), "--out", str(out), "--store", store, "--jobs", "1"]
    for more in (20, 130):
        before = len(list(out.rglob(".done/*.json")))
        with subprocess.Popen(
            [sys.executable, "-m", "lpcfg", *command], stderr=subprocess.DEVNULL
        ) as one:
            while len(list(out.rglob(".done/*.json"))) < before + more:
                assert one.poll() is None
                time.sleep(0.002)
            one.kill()
        for path in (out / "trees").rglob("*.jsonl"):
            assert len(rows(path)) == 5
    ((done, *_),) = [predict(spec(store, out), folder)]
    assert done.progress.skipped >= 150
    assert len(seen(out)) == 1500
    assert set(seen(out).values()) == {1}


def test_what_a_worker_cannot_load_is_raised_by_the_run(
    store: str, texts: Path, tmp_path: Path
) -> None:
    asked = replace(spec(store, tmp_path / "out"), hash="0" * 64)
    with pytest.raises(StoreError, match="use the same store for all workers"):
        run_by(asked, partial(Processes, 1), texts)


def test_an_interrupt_ends_a_run_silently_and_leaves_no_half_file(
    store: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text(f"{WORDS}\n" * 20_000)
    out = tmp_path / "out"
    command = [*("parse", "small", str(tmp_path / "a.txt"), "--input", "lines"), "--store", store]
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "lpcfg",
            *command,
            "--out",
            str(out),
            "--jobs",
            "1",
            "--piece",
            "900",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as one:
        while len(list(out.rglob(".work/*/*.part"))) < 3:
            assert one.poll() is None
            time.sleep(0.01)
        one.send_signal(signal.SIGINT)
        shown, told = one.communicate(timeout=60)
    assert one.returncode == 130
    assert shown == ""
    assert re.fullmatch(r"(KB of text.*\n)*", told)
    assert not (out / "trees").exists()
