"""The `lpcfg` command. One module per subcommand; each imports what it works with when it runs.

Results go to stdout, progress and messages to stderr. The exit code is 0 when it is done, 1 after
a failure that one line on stderr explains, 2 when the command was not understood, and, as shells
have it, 130 after Ctrl-C and 141 when nobody reads the output any longer.
"""

import io
import os
import sys
from collections.abc import Sequence
from typing import IO, Annotated, Any

import typer

from lpcfg.base.errors import LpcfgError
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
    train,
    tree_probability,
    treebank,
    words,
)
from lpcfg.cli.groups import group_of, name_of
from lpcfg.kinds.registry import all_kinds

BROKEN_PIPE = 141
"""The exit code of a command whose reader has gone: 128 + SIGPIPE."""
HELP = "Learn constituency parsers from treebanks by the spectral method, and use them."


def commands() -> typer.Typer:
    """Make the command, with a group for each kind of models that has one."""
    kinds = all_kinds()
    made = typer.Typer(
        help=HELP,
        epilog="Example: lpcfg train trees.mrg --name mine && lpcfg parse mine sentences.txt",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    made.callback()(_options)
    for command, example in (
        (train.train, "train trees.mrg --name mine --dev dev.mrg"),
        (evaluate.command(*kinds), "evaluate en test.mrg --tags gold"),
        (compare.command(*kinds), "compare en mine test.mrg"),
        (parse.command(*kinds), "parse en --output json < text.txt"),
        (tree_probability.tree_probability, "tree-probability en trees.mrg --json"),
        (report.command(*kinds), "report en --output en.html"),
        (serve.serve, "serve --model en --port 8000"),
        (sample.sample, "sample examples/two_state.toml --count 1000"),
        (bound.bound, "bound examples/two_state.toml --epsilon 0.1"),
    ):
        made.command(epilog=f"Example: lpcfg {example}")(command)
    former = "Example: lpcfg score en trees.mrg --json"  # its name until 0.2
    made.command("score", hidden=True, epilog=former)(tree_probability.tree_probability)
    groups = {"models": models.app, "treebank": treebank.app, "lm": lm.app}
    groups |= {name: group_of(kind) for kind in kinds if (name := name_of(kind))}
    groups["dep"].add_typer(dep.app)  # what trees of arcs alone have
    for name, group in {**groups, "words": words.app, "similarity": similarity.app}.items():
        made.add_typer(group, name=name)
    return made


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"lpcfg {version('lpcfg')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    del version


app = commands()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Without arguments, it is the process's own."""
    _prepare_streams()
    if arguments is None:
        interrupts.watch()
    try:
        code = app(args=arguments, prog_name="lpcfg", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:  # Typer makes an exit of a broken pipe
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except typer.TyperException as error:
        return _fail(_usage(error), error.exit_code)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
    except LpcfgError as error:
        return _fail(str(error), 1)
    if interrupts.happened():
        return interrupts.INTERRUPTED
    return code if isinstance(code, int) else 0


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
