"""Ctrl-C ends a command at any moment: exit code 130, silence, nothing half-written."""

import fcntl
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lpcfg.cli import main
from lpcfg.store.versions import list_models, verify
from lpcfg.trees.brackets import parse_tree

SMALL = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
SPAN = 2.0  # seconds: imports, loading, and the beginning of work that takes far longer
COMMANDS = ("parse", "train", "evaluate", "serve")
RANDOM = random.Random(20261118)
MOMENTS = [(name, how, RANDOM.uniform(0, SPAN)) for name in COMMANDS for how in range(5)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with `small`, whose kernels are compiled."""
    folder = tmp_path_factory.mktemp("store")
    assert main(["train", str(SMALL), "--name", "small", "--store", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the arguments of each command, with more to do than there is time."""
    folder = tmp_path_factory.mktemp("inputs")
    trees, tokens = folder / "trees.mrg", folder / "tokens.txt"
    trees.write_text(SMALL.read_text(encoding="utf-8") * 400, encoding="utf-8")
    tokens.write_text("Peter saw the man with the telescope in the old park .\n" * 100_000)
    return {
        "parse": ["parse", "small", str(tokens), "--input", "tokens"],
        "train": ["train", str(trees), "--name", "other", "--workers", "2"],
        "evaluate": ["evaluate", "small", str(trees)],
        "serve": ["serve", "--model", "small", "--port", "0"],
    }


def start(arguments: Sequence[str], **streams: Any) -> "subprocess.Popen[bytes]":
    def prepare() -> None:
        # A shell's background job ignores interrupts, and so would what it starts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if streams.get("start_new_session"):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal that sends this session's signals

    command = [sys.executable, "-m", "lpcfg", *arguments]
    return subprocess.Popen(command, preexec_fn=prepare, **streams)


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.005)


def holds_interrupts_back(process: int) -> bool:
    """Return True once a process has run the first line of this package."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    found = re.search(r"SigBlk:\s*(\w+)", status)
    return found is not None and bool(int(found[1], 16) >> (signal.SIGINT - 1) & 1)


def in_a_pipe(arguments: Sequence[str], pause: float) -> tuple[int, str, str]:
    """Exit code, output and messages of a command that is sent SIGINT."""
    pipe = subprocess.PIPE
    with start(arguments, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as command:
        wait_for(lambda: holds_interrupts_back(command.pid))
        timer = threading.Timer(pause, command.send_signal, [signal.SIGINT])
        timer.start()
        out, err = command.communicate(timeout=60)
        timer.join()
    return command.returncode, out.decode(), err.decode()


def on_a_terminal(arguments: Sequence[str], pause: float) -> tuple[int, str]:
    """Exit code and screen of a command whose user presses Ctrl-C; its workers get it as well."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def look() -> None:
        try:
            while piece := os.read(ours, 1 << 16):
                shown.extend(piece)
        except OSError:  # nobody holds the other end any more
            return

    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    with start(arguments, **streams, start_new_session=True) as command:
        os.close(theirs)
        looking = threading.Thread(target=look)
        looking.start()
        wait_for(lambda: holds_interrupts_back(command.pid))
        time.sleep(pause)
        os.write(ours, b"\x03")
        command.wait(60)
        looking.join(60)
    os.close(ours)
    return command.returncode, shown.decode()


def check_results(name: str, out: str) -> None:
    """Check that whatever a command printed before it ended is complete."""
    assert out == "" or out.endswith("\n")
    if name == "parse":
        assert len({parse_tree(line) for line in out.splitlines()}) <= 1
    else:
        assert out == "" or name == "serve"


@pytest.mark.parametrize(("name", "how", "pause"), MOMENTS)
def test_an_interrupt_ends_a_command_at_any_moment(
    name: str, how: int, pause: float, store: Path, inputs: dict[str, list[str]]
) -> None:
    arguments = [*inputs[name], "--store", str(store)]
    if how % 2:
        code, screen = on_a_terminal(arguments, pause)
        assert re.search(r"Traceback|Error|rror:|Segmentation", screen) is None, screen[-2000:]
    else:
        code, out, err = in_a_pipe(arguments, pause)
        check_results(name, out)
        if name == "serve":  # its log
            assert all(json.loads(line)["level"] == "info" for line in err.splitlines())
        else:  # progress, in words
            assert re.search(r"Traceback|Error|rror:|Segmentation", err) is None, err[-2000:]
    assert code == 130
    assert [str(one.reference) for one in list_models(store)] == ["small@1"]
    assert verify("small", store)
    assert [path.name for path in (store / "other").glob("*")] == []


def test_an_interrupt_waits_for_the_line_that_is_being_written() -> None:
    code = (
        "import time; from lpcfg.base.cancel import FINISHING; from lpcfg.cli import interrupts\n"
        "interrupts.watch()\n"
        "with FINISHING:\n"
        "    print('half', end='', flush=True); time.sleep(0.5); print(' and half', flush=True)\n"
        "time.sleep(60)"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdout=pipe, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.read(4) == "half"
        command.send_signal(signal.SIGINT)
        assert command.stdout.read() == " and half\n"
        assert command.wait() == 130


def test_an_ignored_interrupt_stays_ignored(store: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "lpcfg", "parse", "small", "--input", "tokens", "--store", store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as command:
        assert command.stdin is not None
        assert command.stdout is not None
        for _ in range(2):
            command.stdin.write("Hello !\n")
            command.stdin.flush()
            assert command.stdout.readline() == "(INTJ (UH Hello) (. !))\n"
            command.send_signal(signal.SIGINT)
