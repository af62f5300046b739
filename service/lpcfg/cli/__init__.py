"""The `lpcfg` command. One module per subcommand; each imports what it works with when it runs.

Results go to stdout, progress and messages to stderr. The exit code is 0 when it is done, 1 after
a failure that one line on stderr explains, 2 when the command was not understood, and, as shells
have it, 130 after Ctrl-C and 141 when the reader of a pipe has gone.
"""

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import IO, Annotated, Any

import typer

from lpcfg.cli import (
    bound,
    compare,
    dep,
    evaluate,
    interrupts,
    lm,
    models,
    parse,
    report,
    sample,
    serve,
    similarity,
    tag,
    train,
    tree_probability,
    treebank,
    words,
)
from lpcfg.errors import LpcfgError

_READER_GONE = 128 + signal.SIGPIPE
"""The exit code of commands that end because nobody reads what they write."""
app = typer.Typer(
    help="Learn constituency parsers from treebanks by the spectral method, and use them.",
    epilog="Example: lpcfg train trees.mrg --name mine && lpcfg parse mine sentences.txt",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"lpcfg {version('lpcfg')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Learn constituency parsers from treebanks by the spectral method, and use them."""
    del version


app.command(epilog="Example: lpcfg train trees.mrg --name mine --dev dev.mrg")(train.train)
app.command(epilog="Example: lpcfg evaluate en test.mrg --tags gold")(evaluate.evaluate)
app.command(epilog="Example: lpcfg compare en mine test.mrg")(compare.compare)
app.command(epilog="Example: echo 'The dog barked.' | lpcfg parse en --output json")(parse.parse)
app.command(epilog="Example: lpcfg tree-probability en trees.mrg --json")(
    tree_probability.tree_probability
)
app.command("score", hidden=True, epilog="Example: lpcfg score en trees.mrg --json")(
    tree_probability.tree_probability
)  # its name until 0.2
app.command(epilog="Example: lpcfg report en --output en.html")(report.report)
app.command(epilog="Example: lpcfg serve --model en --port 8000")(serve.serve)
app.command(epilog="Example: lpcfg sample examples/two_state.toml --count 1000")(sample.sample)
app.command(epilog="Example: lpcfg bound examples/two_state.toml --epsilon 0.1")(bound.bound)
app.add_typer(models.app, name="models")
app.add_typer(treebank.app, name="treebank")
app.add_typer(lm.app, name="lm")
app.add_typer(dep.app, name="dep")
app.add_typer(tag.app, name="tag")
app.add_typer(words.app, name="words")
app.add_typer(similarity.app, name="similarity")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Without arguments, it is the process's own."""
    _prepare_streams()
    if arguments is None:
        interrupts.watch()
    try:
        code = app(args=arguments, prog_name="lpcfg", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _without_reader()
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return _without_reader()  # of which typer makes an exit with code 1
    except typer.TyperException as error:
        return _fail(_usage(error), error.exit_code)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
    except LpcfgError as error:
        return _fail(str(error), 1)
    if interrupts.happened():
        return interrupts.INTERRUPTED
    return code if isinstance(code, int) else 0


def _without_reader() -> int:
    """End without a message: nobody reads what this process writes, the rest of it included."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _READER_GONE


def _prepare_streams() -> None:
    """Make the streams UTF-8 in any locale, with names of files that are not UTF-8 escaped; replace
    closed streams by empty ones.
    """
    sys.stdin = sys.stdin or _nowhere("r")
    sys.stdout = sys.stdout or _nowhere("w")
    sys.stderr = sys.stderr or _nowhere("w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _nowhere(mode: str) -> IO[Any]:
    return os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8")


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().rstrip(".").replace(": Value error, ", ": ")
    if not message:  # the help was shown
        return ""
    return f"{message} (see `{context.command_path} --help`)" if context else message


def _fail(message: str, code: int) -> int:
    if message:
        print(f"lpcfg: error: {message}", file=sys.stderr)
    return code
