"""`lpcfg parse`: answer sentences by a model of any kind, and print the answers."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lpcfg.api.stores import chosen
from lpcfg.cli.options import (
    Command,
    Given,
    Json,
    Model,
    Store,
    options_of,
    with_options,
    wrong_usage,
)
from lpcfg.cli.terminal import note, result, result_json
from lpcfg.kinds.registry import AnyKind, AnyLoaded, find_kind, load_model
from lpcfg.predict.forms import Form

if TYPE_CHECKING:
    from lpcfg.cli.sentences import Found

UNIVERSAL = frozenset(
    (
        *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON"),
        *("PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
    )
)
"""The tags of Universal Dependencies, which people mistake for a treebank's own."""
MOST_TAGS = 8  # of those that a message names


def command(*kinds: AnyKind) -> Command:
    """Make the command for models of these kinds."""
    forms = (*dict.fromkeys(form for kind in kinds for form in kind.forms), "json", "parquet")
    only = None if kinds[1:] else kinds[0].name
    form_of_output: Any = Literal[forms]

    @with_options(*(kind.options for kind in kinds))
    def parse(
        model: Model,
        files: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="FILE",
                help="Files, folders, patterns and URLs, also .gz and .zst; standard input where "
                "none is given.",
                show_default=False,
            ),
        ] = None,
        form: Annotated[
            Form | None,
            typer.Option(
                "--input",
                help="Running text; a sentence a line: as text, tokens or word/TAG; or CoNLL-U. "
                "With --out also JSON lines with `id` and `text`, or Parquet, and the file's name "
                "decides.",
                show_default="text",
            ),
        ] = None,
        output: Annotated[
            form_of_output | None,
            typer.Option(
                help="A tree a line in brackets (ptb), as a drawing (svg) or for the package "
                "forest (latex); word/TAG (tagged); CoNLL-U, for trees by head rules; all that is "
                "known, as JSON; or Parquet. Models of a kind have some of these.",
                show_default="the first of the model's kind, json with --out",
            ),
        ] = None,
        *,
        given: Given,
        marginals: Annotated[
            bool,
            typer.Option("--marginals", help="Add the posteriors of all spans (with JSON)."),
        ] = False,
        out: Annotated[
            str | None,
            typer.Option(
                metavar="DIR",
                help="Answer a collection into this folder or URL, a file for each input; what is "
                "done already is skipped: see docs/scale.md.",
            ),
        ] = None,
        jobs: Annotated[
            int | None, typer.Option(min=1, help="Processes with --out; by default one per core.")
        ] = None,
        scheduler: Annotated[
            str | None,
            typer.Option(
                metavar="ADDRESS",
                help="A dask.distributed scheduler whose workers parse, with --out: all must reach "
                "inputs, DIR and the model store under the same names.",
            ),
        ] = None,
        columns: Annotated[
            str,
            typer.Option(
                metavar="TEXT[,ID]", help="The columns of Parquet input with texts and their ids."
            ),
        ] = "text",
        piece: Annotated[
            int,
            typer.Option(
                metavar="BYTES", min=1, help="With --out, longer files are cut into such pieces."
            ),
        ] = 1 << 18,
        mix: Annotated[
            bool,
            typer.Option("--mix", help="Add to a folder with answers of another model or options."),
        ] = False,
        store: Store = None,
        json: Json = False,
    ) -> None:
        """Parse running text or sentences, and print each answer, in order, as soon as it is found.

        A sentence without a tree leaves its line empty, and stderr says why.

        With --k above 1 an empty line follows the trees of every sentence.
        """
        form_asked = _form(output, json)
        if out is None:
            _check_no_collection(form_asked, form, jobs, scheduler)
            if marginals and form_asked != "json":
                raise _wrong("--marginals", "trees have no room for them: add --json")
        elif marginals or given.get("k", 1) != 1:
            raise _wrong("--out", "files hold one tree a sentence: omit --k and --marginals")
        place = chosen(store)
        kind = find_kind(model, place.store, only=only)
        options = options_of(kind.options, given, kind.title)
        if out is not None:
            from lpcfg.cli.corpus import answer_into
            from lpcfg.predict.tasks import RunSpec

            text, _, id = columns.partition(",")
            more = {"columns": (text, id or None), "chunk": piece}
            with wrong_usage("--output"):
                wanted = form_asked or "json"
                spec = RunSpec.of(model, place.store, out, wanted, options.as_json(), **more)
            answer_into(spec, files or [], form, jobs, scheduler, mix=mix, json=json)
            return
        wanted = form_asked or next(iter(kind.forms), "json")
        if wanted not in (*kind.forms, "json"):
            known = " or ".join((*kind.forms, "json"))
            raise _wrong("--output", f"a {kind.title} prints no {wanted}: choose {known}")
        if marginals and kind.name != "constituency":
            raise _wrong("--marginals", f"a {kind.title} has none: leave it out")
        from lpcfg.cli.sentences import sentences

        loaded = load_model(model, place.store)
        found = sentences(files or (), form or Form.TEXT, loaded.segmenter)
        _print(loaded, found, wanted, options, marginals=marginals, named=bool(files))

    return parse


def _wrong(flag: str, problem: str) -> typer.BadParameter:
    return typer.BadParameter(problem, param_hint=flag)


def _form(output: str | None, json: bool) -> str | None:
    """Return the form that is asked for, or None for the first one of the kind."""
    if json and output not in (None, "json"):
        raise _wrong("--json", f"--output {output} prints no JSON: leave one of both out")
    return "json" if json else output


def _check_no_collection(
    output: str | None, form: Form | None, jobs: int | None, scheduler: str | None
) -> None:
    """Refuse what only collections have."""
    if output == "parquet" or form in (Form.JSON, Form.PARQUET):
        raise _wrong("--out", "this form is for collections: name a folder")
    for flag, value in (("--jobs", jobs), ("--scheduler", scheduler)):
        if value is not None:
            raise _wrong(flag, "only collections are shared out among workers: add --out DIR")


def _print(
    loaded: AnyLoaded,
    found: "Iterable[Found]",
    output: str,
    options: Any,
    *,
    marginals: bool,
    named: bool,
) -> None:
    """Print the answers to sentences, and notes about those that have none or only a part."""
    kind, predictor = loaded.kind, loaded.predictor
    known = frozenset(kind.tags(predictor))
    unknown: Counter[str] = Counter()
    for one in found:
        if known:
            unknown.update(tag for tag in one.sentence.tags or () if tag and tag not in known)
        else:
            kind.check(predictor, one.sentence)
        (answer,) = loaded.predict([one.sentence], options)
        if answer.reason is not None:
            where = f" of {one.source}" if named else ""
            note(f"sentence {one.number}{where}: {answer.status}: {answer.reason}")
        if output == "json":
            shown = kind.answer(answer)
            if marginals:
                from lpcfg.kinds.constituency.answer import marginals_json

                shown["marginals"] = marginals_json(predictor.marginals(one.sentence))
            result_json(shown)
        elif (text := kind.text(answer, output, options)) is not None:
            result(text)
    if unknown:
        note(_about_tags(unknown))


def _about_tags(unknown: Counter[str]) -> str:
    """Say once, for all sentences, which tags the model does not have."""
    first = [f"{tag} ({count})" for tag, count in unknown.most_common(MOST_TAGS)]
    more = ", …" if len(unknown) > MOST_TAGS else ""
    told = f"the model does not have {len(unknown)} of the tags given: {', '.join(first)}{more}: "
    if unknown.keys() <= UNIVERSAL:
        return told + "they are tags of Universal Dependencies: give the treebank's own, or none"
    return told + "words with them got tags of the model's own"
