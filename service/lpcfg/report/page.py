"""The report's page: the facts in a model's manifest and the results of an evaluation.

A section is left out if the model was published without its facts. A model of constituents has
plots of its own; models of other kinds have their scores and facts in tables.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from lpcfg.kinds.registry import kind_of
from lpcfg.report.plots import Bar, Mark, bars, heat, reliability
from lpcfg.report.style import CSS
from lpcfg.store.files import Tensors
from lpcfg.store.versions import Stored

Facts = Mapping[str, Any]

LABELS = 20
"""How many labels have their F1 drawn: the most frequent ones."""
SYMBOLS = 40
"""How many symbols have their singular values drawn: the most frequent ones."""


@dataclass(frozen=True)
class Evaluation:
    """Scores with the names of `lpcfg evaluate --json`, and the data they were measured on."""

    title: str
    scores: Facts


def page(stored: Stored, evaluation: Evaluation | None = None) -> str:
    """Write the whole page. Without an evaluation, show the dev scores from training."""
    facts, shown = _facts(stored), _shown(stored, evaluation)
    ours = kind_of(facts).name == "constituency"
    sections = [
        *(_of_trees(stored, facts, shown) if ours else map(_scores, shown)),
        _sizes(stored, facts),
        _stages(facts.get("stages", ())),
        _configuration(facts) if ours else _training(facts),
    ]
    tiles = _tree_tiles(shown) if ours else {}
    name = escape(str(stored.reference))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name} · lpcfg</title><style>{CSS}</style></head><body>\n"
        f"{_top(stored, facts, tiles)}\n<main>\n{_joined(sections)}\n</main></body></html>\n"
    )


def told(stored: Stored, evaluation: Evaluation | None = None) -> dict[str, Any]:
    """Return the facts that the page shows, for scripts."""
    manifest: Facts = stored.manifest
    facts, shown = _facts(stored), _shown(stored, evaluation)
    reference, maps = stored.reference, _maps(stored)
    return {
        "name": reference.name,
        "version": reference.version,
        "hash": reference.hash,
        "created": manifest["created"],
        "evaluation": {"on": shown[0].title, **shown[0].scores} if shown else None,
        "calibration_map": maps.get(""),
        "kind_calibration_maps": {kind: one for kind, one in maps.items() if kind},
        "arrays": _array_bytes(stored.tensors),
        "files": {name: one["bytes"] for name, one in manifest["files"].items()},
        "facts": facts,
    }


def _facts(stored: Stored) -> Facts:
    manifest: Facts = stored.manifest
    return manifest.get("facts") or {}


def _shown(stored: Stored, evaluation: Evaluation | None) -> list[Evaluation]:
    """Return the evaluation, or else those of training."""
    facts = _facts(stored)
    return (
        [evaluation]
        if evaluation
        else [Evaluation(title, scores) for title, scores in kind_of(facts).scores(facts).items()]
    )


def _joined(sections: Iterable[str]) -> str:
    return "\n".join(section for section in sections if section)


def _top(stored: Stored, facts: Facts, scores: Mapping[str, str]) -> str:
    """Write the model's name, and a tile for each of the most important numbers."""
    manifest: Facts = stored.manifest
    members = facts.get("members", ())
    tiles = dict(scores)
    if members:
        tiles["members"] = str(len(members))
    if "sizes" in facts:
        tiles["training trees"] = f"{facts['sizes']['trees']:,}"
    if "stages" in facts:
        tiles["seconds to train"] = f"{_training_seconds(facts['stages']):.1f}"
    tiles["on disk"] = _megabytes(sum(file["bytes"] for file in manifest["files"].values()))
    learned = ", ".join(str(one["estimator"]) for one in members)
    by = f"Learned by {escape(learned)}. " if learned else ""
    return (
        f"<header><h1>{escape(str(stored.reference))}</h1>"
        f'<p class="muted">{by}{_adapted(facts)}Published {escape(str(manifest["created"]))}, '
        f"hash <code>{escape(stored.reference.hash)}</code>.</p>{_tiles(tiles)}</header>"
    )


def _adapted(facts: Facts) -> str:
    """Say which model this one was adapted from, if it was."""
    if "adaptation" not in facts:
        return ""
    own, base = facts["adaptation"], facts["base"]
    return (
        f"Adapted from {escape(base['model'])} to {own['trees']:,} trees of {own['words']:,} "
        "words; what is said here of training trees, singular values and the training's cost is "
        "the base's. "
    )


def _training_seconds(stages: Sequence[Facts]) -> float:
    """Sum the seconds of training, without those of evaluation."""
    return float(sum(one["seconds"] for one in stages if not one["name"].endswith("dev")))


# Any kind of models -------------------------------------------------------------------------------


def _scores(evaluation: Evaluation) -> str:
    return _section(f"Scores on {escape(evaluation.title)}", "", _figures(evaluation.scores))


def _training(facts: Facts) -> str:
    rest = {name: value for name, value in facts.items() if name not in ("dev", "stages")}
    return _section("What it was learned from, and how", "", _figures(rest))


def _figures(facts: Facts) -> str:
    rows = ((name.replace("_", " "), text_of(value)) for name, value in flat(facts))
    return _table(("what", "value"), rows)


def flat(facts: Facts, prefix: str = "") -> Iterator[tuple[str, str | float]]:
    """Yield facts with the names of their parents, without lists and counts of symbols."""
    for key, value in facts.items():
        if isinstance(value, Mapping) and key != "symbols":
            yield from flat(value, f"{prefix}{key}.")
        elif isinstance(value, str | int | float):
            yield prefix + key, value


def text_of(value: str | float) -> str:
    """Write a fact for people."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else " ".join(value.split())


# Scores of trees ----------------------------------------------------------------------------------


def _of_trees(stored: Stored, facts: Facts, shown: Sequence[Evaluation]) -> Iterator[str]:
    for evaluation in shown:
        yield _f1(evaluation)
        if "calibration" in evaluation.scores:
            yield _calibration(evaluation, _maps(stored))
    yield _unseen(facts.get("dev") or {})
    yield _spectra(facts)


def _tree_tiles(shown: Sequence[Evaluation]) -> dict[str, str]:
    scores = shown[0].scores if shown else {}
    formats = (
        ("f1", "F1, strict", "{:.1f}"),
        ("exact_match", "exact trees", "{:.1f} %"),
        ("tag_accuracy", "tags right", "{:.1f} %"),
        ("calibration_error", "calibration error", "{:.3f}"),
        ("sentences_per_second", "sentences a second", "{:.0f}"),
    )
    return {title: form.format(scores[key]) for key, title, form in formats if key in scores}


def _maps(stored: Stored) -> dict[str, Any]:
    """Return the maps of the probabilities that are served, by kind of text; "" for all others.

    Where a rescoring layer decides, they are the layer's.
    """
    fitted: Facts = stored.grammar.get("rescoring", stored.grammar)  # type: ignore[assignment]
    maps = {"": fitted.get("calibration"), **fitted.get("kind_calibrations", {})}
    return {kind: one for kind, one in maps.items() if one is not None}


def _f1(evaluation: Evaluation) -> str:
    scores = evaluation.scores
    labels = dict(list(scores["by_label"].items())[:LABELS])
    lengths = {name: one for name, one in scores["by_length"].items() if one["count"]}
    return _section(
        "F1 by length and by label",
        f"{scores['sentences']:,} sentences of {escape(evaluation.title)}: "
        f"precision {scores['precision']:.1f}, recall {scores['recall']:.1f}, "
        f"F1 {scores['f1']:.1f} (strict; EVALB would print {scores['evalb_f1']:.1f}), "
        f"{scores['failures']:,} failures. Strokes on the bars are precision and recall.",
        '<div class="side">'
        + _figure("by tokens in the sentence", _groups(lengths, "sentences"))
        + _figure(f"the {len(labels)} most frequent labels", _groups(labels, "in gold trees"))
        + "</div>"
        + _folded(
            "All labels as numbers",
            _table(
                ("label", "precision", "recall", "F1", "count"),
                (
                    (
                        name,
                        f"{one['precision']:.1f}",
                        f"{one['recall']:.1f}" if one["count"] else "–",
                        f"{one['f1']:.1f}",
                        f"{one['count']:,}",
                    )
                    for name, one in scores["by_label"].items()
                ),
            ),
        ),
    )


def _groups(groups: Facts, counted: str) -> str:
    rows = [
        Bar(
            name,
            one["f1"],
            f"{one['f1']:.1f} · {one['count']:,}",
            f"{name}: precision {one['precision']:.1f}, recall {one['recall']:.1f}, "
            f"F1 {one['f1']:.1f}, {one['count']:,} {counted}",
            (one["precision"], one["recall"]),
        )
        for name, one in groups.items()
    ]
    return bars(rows, label=f"F1 and how many {counted}", most=100.0)


def _calibration(evaluation: Evaluation, maps: Facts) -> str:
    raw, served = evaluation.scores["raw_calibration"], evaluation.scores["calibration"]
    curves = [list(zip(*one, strict=True)) for one in maps.values()]
    mapped = "This model has no map: it serves probabilities as they are."
    if curves:
        lines = "lines are its maps, one for each kind of text" if curves[1:] else "line is its map"
        mapped = f"The {lines}, fitted to trees held out of training."
    before = _figure(
        f"<strong>Before the map</strong>: error {raw['calibration_error']:.4f}",
        reliability(_marks(raw), curves, label="reliability before the calibration map"),
    )
    after = _figure(
        f"<strong>As served</strong>: error {served['calibration_error']:.4f}",
        reliability(_marks(served), (), label="reliability of what is served"),
    )
    return _section(
        "Do probabilities mean what they say?",
        f"{served['items']:,} labelled spans of {escape(evaluation.title)} with a probability of "
        "at least 0.05, rivals of the best tree included, in 20 bins. A dot on the diagonal is "
        f"right as often as it says. {mapped}",
        f'<div class="side">{before}{after}</div>'
        + _folded("Bins as numbers", _bins(served["bins"])),
    )


def _marks(measured: Facts) -> list[Mark]:
    return [
        Mark(
            one["mean_probability"],
            one["accuracy"],
            one["count"],
            f"{one['count']:,} spans from {one['lower']:.2f} to {one['upper']:.2f}: stated "
            f"{one['mean_probability']:.3f}, right {one['accuracy']:.3f}",
        )
        for one in measured["bins"]
        if one["count"]
    ]


def _bins(bins: Sequence[Facts]) -> str:
    rows = (
        (
            f"{one['lower']:.2f}-{one['upper']:.2f}",
            f"{one['mean_probability']:.3f}",
            f"{one['accuracy']:.3f}",
            f"{one['count']:,}",
        )
        for one in bins
        if one["count"]
    )
    return _table(("probability", "stated", "right", "spans"), rows)


def _unseen(dev: Facts) -> str:
    if "unseen_words" not in dev:  # as of an adapted model, whose base's trees are not at hand
        return ""
    shares = {
        "unknown words": (dev["unseen_words"], dev["tokens"]),
        "sentences with a new rule": (dev["trees_with_unseen_rules"], dev["trees"]),
    }
    tiles = {name: f"{100 * part / whole:.1f} %" for name, (part, whole) in shares.items()}
    tiles["nodes with a new rule"] = f"{dev['unseen_rules']:,}"
    tiles["nodes with a new symbol"] = f"{dev['unseen_symbols']:,}"
    names = ", ".join(f"<code>{escape(name)}</code>" for name in dev["labels"])
    return _section(
        "Never seen in training",
        f"{dev['trees']:,} dev trees of {dev['tokens']:,} tokens were held against the training "
        "trees.",
        _tiles(tiles) + (_folded("New symbols", f"<p>{names}</p>") if names else ""),
    )


# The model ----------------------------------------------------------------------------------------


def _spectra(facts: Facts) -> str:
    counts: Mapping[str, int] = facts.get("symbols", {})
    drawn = [
        _spectrum(f"member {k}, {one['estimator']}", one, counts)
        for k, one in enumerate(facts.get("members", ()), start=1)
        if counts and "singular_values" in one
    ]
    if not drawn:
        return ""
    return _section(
        "Singular values by symbol",
        f"Of Ω of the {SYMBOLS} most frequent symbols, each divided by its first. Those in the "
        "frame became latent states. The table has σ̂ of every symbol, the least singular value "
        "that became a state. It stands for the σ of theorem 8, but it is estimated from the same "
        "trees, with scaled features: not a guarantee.",
        f'<div class="side">{"".join(drawn)}</div>',
    )


def _spectrum(title: str, member: Facts, counts: Mapping[str, int]) -> str:
    spectra: Mapping[str, Sequence[float]] = member["singular_values"]
    states = dict(zip(spectra, member["states"], strict=True))
    rows = [
        (
            name,
            [value / (spectra[name][0] or 1.0) for value in spectra[name]],
            states[name],
            f"{name}: {counts[name]:,} nodes, {states[name]} states, "
            f"first singular value {max(spectra[name], default=0):.3f}",
        )
        for name in list(counts)[:SYMBOLS]
    ]
    numbers = (
        (
            name,
            f"{counts[name]:,}",
            str(states[name]),
            f"{spectra[name][states[name] - 1]:.3g}" if spectra[name] else "–",
            " ".join(f"{value:.2f}" for value in spectra[name]),
        )
        for name in counts
    )
    widest = max((len(values) for values in spectra.values()), default=0)
    plot = heat(rows, columns=widest, label=f"singular values by symbol: {title}")
    table = _table(("symbol", "nodes", "states", "σ̂", "singular values"), numbers)
    folded = _folded("All symbols as numbers", table)
    return f"<div>{_figure(escape(title), plot)}{folded}</div>"


def _sizes(stored: Stored, facts: Facts) -> str:
    manifest: Facts = stored.manifest
    tensors = _array_bytes(stored.tensors)
    rows = sorted(tensors.items(), key=lambda item: -item[1])
    plot = bars(
        [Bar(name, size, _megabytes(size), f"{name}: {size:,} bytes") for name, size in rows],
        label="bytes of every group of arrays",
        most=max(tensors.values(), default=0),
    )
    counted = _table(
        ("what", "how many"),
        ((key.replace("_", " "), f"{value:,}") for key, value in facts.get("sizes", {}).items()),
    )
    listed = _table(
        ("file", "bytes"),
        ((name, f"{one['bytes']:,}") for name, one in manifest["files"].items()),
    )
    return _section(
        "Sizes",
        "",
        f'<div class="side">{_figure("arrays, by what they are for", plot)}'
        f"<div>{counted}{listed}</div></div>",
    )


def _array_bytes(tensors: Tensors) -> dict[str, int]:
    """Sum the bytes of the arrays in memory, by purpose."""
    sizes: dict[str, int] = {}
    for name, array in tensors.items():
        group = _room(name)
        sizes[group] = sizes.get(group, 0) + array.nbytes
    return sizes


def _room(tensor: str) -> str:
    """Name the purpose of an array: `members.0.parent` belongs to member 1, for example."""
    first, _, rest = tensor.partition(".")
    if first == "members":
        return f"member {int(rest.partition('.')[0]) + 1}"
    return first if rest else "grammar"


def _stages(stages: Sequence[Facts]) -> str:
    if not stages:
        return ""
    plot = bars(
        [
            Bar(
                one["name"],
                one["seconds"],
                f"{one['seconds']:.2f} s",
                f"{one['name']}: {one['seconds']:.2f} s, {one['cpu_seconds']:.2f} CPU s",
            )
            for one in stages
        ],
        label="seconds of every stage",
        most=max(one["seconds"] for one in stages),
    )
    table = _table(
        ("stage", "CPU s", "items", "peak", "largest worker"),
        (
            (
                one["name"],
                f"{one['cpu_seconds']:.2f}",
                f"{one['items']:,}" if one["items"] else "",
                _megabytes(one["peak_bytes"]),
                _megabytes(one["worker_peak_bytes"]) if one["worker_peak_bytes"] else "",
            )
            for one in stages
        ),
    )
    return _section(
        "What training took",
        "Wall seconds a stage. Peaks are the highest resident memory so far.",
        _figure("seconds", plot) + _folded("All stages as numbers", table),
    )


def _configuration(facts: Facts) -> str:
    if "configuration" not in facts:
        return ""
    treebank = facts.get("treebank", {})
    told = json.dumps(facts["configuration"], indent=2, ensure_ascii=False)
    return _section(
        "Where it comes from",
        f"Licence of the treebank: {escape(str(treebank.get('licence')))}. "
        f"Fingerprint: <code>{escape(str(treebank.get('fingerprint')))}</code>.",
        _folded("Configuration", f"<pre>{escape(told)}</pre>"),
    )


# Pieces -------------------------------------------------------------------------------------------


def _section(title: str, lead: str, content: str) -> str:
    """Write a section. Its title is text; its lead and its content are HTML."""
    said = f'<p class="muted">{lead}</p>' if lead else ""
    return f"<section><h2>{title}</h2>{said}{content}</section>"


def _tiles(tiles: Mapping[str, str]) -> str:
    inner = (f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in tiles.items())
    return f'<dl class="tiles">{"".join(inner)}</dl>'


def _figure(caption: str, plot: str) -> str:
    said = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f"<figure>{said}{plot}</figure>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{titles}</tr>{body}</table></div>'


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.2f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"
