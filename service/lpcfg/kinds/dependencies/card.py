"""Publish a dependency model in the store, with a description of its training and its scores."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lpcfg.kinds.dependencies.arcs import Arcs
from lpcfg.kinds.dependencies.evaluate import measure
from lpcfg.kinds.dependencies.model import DependencyModel, from_bundle, to_bundle
from lpcfg.kinds.dependencies.predict import DependencyParser
from lpcfg.kinds.dependencies.train import Config, Report
from lpcfg.store.versions import Reference
from lpcfg.store.versions import publish as publish_bundle


def publish(
    store: str | Path,
    name: str,
    model: DependencyModel,
    report: Report,
    config: Config,
    dev: Mapping[str, Sequence[Arcs]],
    licence: str,
) -> tuple[Reference, dict[str, Any]]:
    """Evaluate the model as it will be stored, and publish it. Return its reference and its
    facts.
    """
    stored = from_bundle(to_bundle(model, facts={}, card=""))
    measured = {file: measure(DependencyParser(stored), gold) for file, gold in dev.items()}
    facts: dict[str, Any] = {
        "estimator": "network of arcs, relations and tags; Algorithm 1",
        "licence": licence,
        "config": asdict(config),
        "learned_from": asdict(report),
        "sharpness": model.inverse_temperature,
        "dev": {file: one.as_json() for file, one in measured.items()},
    }
    if model.spectral is not None:
        facts["conditions"] = model.spectral.operators.conditions
    bundle = to_bundle(model, facts=facts, card=_card(name, facts, report))
    return publish_bundle(store, name, bundle), facts


def told(reference: Reference, facts: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Tell people what was learned, and, for stderr, which trees were changed for it."""
    learned = facts["learned_from"]
    seconds = sum(learned["seconds"].values())
    lines = [f"{reference}: {learned['sentences']} sentences, learned in {seconds:.1f} s"]
    for file, scores in facts["dev"].items():
        lines.append(f"{file}: UAS {scores['uas']:.2f}, LAS {scores['las']:.2f}")
    if not learned["not_projective"]:
        return lines, []
    note = (
        f"{learned['not_projective']} of {learned['sentences']} trees were not projective: "
        f"{learned['lifted']} arcs lifted"
    )
    return lines, [note]


def _card(name: str, facts: Mapping[str, Any], report: Report) -> str:
    """Write the model's card: a description, its training data, and its scores."""
    lines = [
        f"# {name}",
        "",
        "A dependency parser: tags, heads and relations of words, each with a probability.",
        "",
        f"- Learned from {report.sentences:,} sentences, {report.words:,} words; "
        f"{report.not_projective} trees were not projective and {report.lifted} arcs lifted.",
        f"- Licence of the trees: {facts['licence']}.",
        "- Trees that it gives are projective and have one root.",
        "- Configuration and all figures: `manifest.json`, under `facts`.",
    ]
    for file, scores in facts["dev"].items():
        lines += [
            "",
            f"## Scores on {Path(file).parent.name}/{Path(file).name}",
            "",
            "Gold tokens, the model's own tags; relations are compared with their subtypes.",
            "",
            "| | UAS | LAS | complete |",
            "|---|---|---|---|",
            "| all words | {uas:.2f} | {las:.2f} | {complete:.2f} |".format(**scores),
            "| without punctuation | {uas_without_punctuation:.2f} | {las_without_punctuation:.2f} "
            "| {complete_without_punctuation:.2f} |".format(**scores),
            "",
            "Tags right {tag_accuracy:.2f} %; calibration error of heads {calibration_error:.4f}, "
            "with relations {relation_calibration_error:.4f}.".format(**scores),
        ]
    return "\n".join((*lines, ""))
