"""Standard input is answered while it comes, from a small window, and a reader may leave."""

import io
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lpcfg.cli import main
from lpcfg.text import files

SMALL = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
CAT = "(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .))\n"
WAIT = 60.0  # seconds: imports on a busy machine take a few
NEXT = "The king saw the dog and the old man with the telescope in the park.\n"
ROWS = "".join(
    f"{k}\t{word}" + "\t_" * 8 + "\n" for k, word in enumerate(("The", "cat", "sleeps", "."), 1)
)
FORMS = {
    "text": "The cat sleeps.\n\n",
    "lines": "The cat sleeps.\n",
    "tokens": "The cat sleeps .\n",
    "tagged": "The/DT cat/NN sleeps/VBZ ./.\n",
    "conllu": f"{ROWS}\n",
}
"""A sentence in each form of input, up to where it is known to end."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a store with `small`, the treebank PCFG of examples/small.mrg."""
    folder = str(tmp_path_factory.mktemp("store"))
    assert main(["train", str(SMALL), "--name", "small", "--store", folder]) == 0
    return folder


@contextmanager
def parsing(store: str, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "lpcfg", "parse", "small", "--store", store, *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as running:
        yield running


def answer(running: "subprocess.Popen[bytes]") -> str:
    """Wait for a line while more input may come."""
    assert running.stdout is not None
    assert running.stderr is not None
    assert select.select([running.stdout], [], [], WAIT)[0], "there was no answer"
    line = running.stdout.readline().decode()
    assert line, running.stderr.read()
    return line


@contextmanager
def fed(running: "subprocess.Popen[bytes]", content: bytes) -> Iterator[list[int]]:
    """Write a content again and again until nobody reads; yield a list with the bytes written."""
    assert running.stdin is not None
    pipe, written = running.stdin.fileno(), [0]

    def feed() -> None:
        try:
            while True:
                written[0] += os.write(pipe, content)
        except BrokenPipeError:
            return

    feeding = threading.Thread(target=feed)
    feeding.start()
    yield written
    feeding.join(WAIT)
    assert not feeding.is_alive()


@pytest.mark.parametrize("form", FORMS)
def test_a_sentence_is_answered_when_its_end_is_known(form: str, store: str) -> None:
    with parsing(store, "--input", form) as running:
        assert running.stdin is not None
        for _ in range(2):
            running.stdin.write(FORMS[form].encode())
            running.stdin.flush()
            assert answer(running) == CAT
        running.stdin.close()
        assert running.wait() == 0


def test_the_next_sentence_shows_that_one_is_at_its_end(store: str) -> None:
    with parsing(store) as running:
        assert running.stdin is not None
        running.stdin.write(f"The cat\nsleeps. {NEXT}".encode())
        running.stdin.flush()
        assert answer(running) == CAT
        out, _ = running.communicate()
    assert out.count(b"\n") == 1


@pytest.mark.parametrize(
    ("form", "content"),
    [
        *((form, content) for form, content in FORMS.items()),
        ("text", "The cat sleeps. "),  # a line without an end
        ("text", "The cat sleeps.\n"),
    ],
    ids=repr,
)
def test_an_endless_input_is_read_as_it_is_answered(form: str, content: str, store: str) -> None:
    piece = content.encode() * (4096 // len(content))
    with parsing(store, "--input", form) as running, fed(running, piece) as written:
        assert [answer(running) for _ in range(100)] == [CAT] * 100
        # a pipe, its reader's buffer, a chunk, and what is answered while this is read
        assert written[0] <= 3 * (1 << 16) + 100 * len(content) + (1 << 17)
        assert running.stdout is not None
        running.stdout.close()  # as `head` does
        assert running.wait(WAIT) == 141
        assert running.stderr is not None
        assert running.stderr.read() == b""


@pytest.mark.parametrize("form", ["lines", "tokens", "tagged"])
def test_an_endless_line_is_refused(form: str, store: str) -> None:
    with parsing(store, "--input", form) as running, fed(running, b"a/NN " * 1000):
        assert running.wait(WAIT) == 1
        assert running.stderr is not None
        assert b"<stdin>:1: expected a line of at most 524288 characters" in running.stderr.read()


def test_an_endless_sentence_of_conllu_is_refused(store: str) -> None:
    with parsing(store, "--input", "conllu") as running, fed(running, ROWS.encode() * 50):
        assert running.wait(WAIT) == 1
        assert running.stderr is not None
        assert b"expected the end of a sentence, got none in 524288" in running.stderr.read()


TEXT = (
    f'A title\r\n\r\n{NEXT}“The dog sings.” She said: "The cat sleeps. The dog sings." Hello!\r\n'
    f"- The king sings.\n- Hello!\n\n{'The old man saw the park. ' * 90}\n\n🙂 The dog sings.\r"
)


@pytest.mark.parametrize("output", ["ptb", "json", "conllu", "svg"])
def test_chunks_change_nothing_in_what_is_printed(
    output: str,
    store: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "text.txt"
    file.write_text(TEXT, encoding="utf-8", newline="")
    command = ["parse", "small", "--output", output, "--store", store]
    assert main([*command, str(file)]) == 0
    whole = capsys.readouterr().out
    for size in (1, 7, 300):
        monkeypatch.setattr(files, "_CHUNK", size)
        content = io.TextIOWrapper(io.BufferedReader(io.BytesIO(TEXT.encode())))  # type: ignore[arg-type]
        monkeypatch.setattr(sys, "stdin", content)
        assert main(command) == 0
        assert capsys.readouterr().out == whole
    if output == "json":
        answers = [json.loads(line) for line in whole.splitlines()]
        assert len(answers) > 95
        for one in answers:
            assert TEXT[one["start"] : one["end"]] == one["text"]
            for token in one["tokens"]:
                assert TEXT[token["start"] : token["end"]] == token["text"]


@pytest.mark.parametrize("size", [1, 1000])
def test_markup_in_chunks_is_refused_before_anything_is_printed(
    size: int, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "_CHUNK", size)
    content = io.StringIO(f"\n \n(S (NP (DT The) (NN dog)))\n{'The dog sings.' * 9}")
    monkeypatch.setattr(sys, "stdin", content)
    assert main(["parse", "small", "--store", store]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "expected plain text, got Penn brackets in <stdin>" in shown.err
