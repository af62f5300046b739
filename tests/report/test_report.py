"""The report: a page that stands alone, with what the manifest and an evaluation say."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lpcfg.cli import main
from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.report.page import LABELS, SYMBOLS, Evaluation, page
from lpcfg.report.plots import Bar, Mark, bars, heat, reliability
from lpcfg.store.versions import Stored, load, publish
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train_and_publish
from tests import small_models
from tests.small_models import SMALL

MODELS = Path(__file__).resolve().parents[2] / "model_store"
EVERYDAY = SMALL.with_name("everyday.mrg")
VOID = {"meta", "rect", "line", "circle", "path"}


class Page(HTMLParser):
    """Tags, attributes and text; fails where tags are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    config = TrainingConfig(members=(member("spectral", states=4), member("counts")))
    train_and_publish(SMALL, config, store=folder, name="told", dev=SMALL)
    publish(folder, "mute", to_bundle(small_models.counts(), facts={}, card=""))
    return folder


@pytest.fixture(scope="module")
def told(store: Path) -> Stored:
    return load("told", store)


def facts_of(stored: Stored) -> Any:
    return stored.manifest["facts"]


def test_the_page_needs_nothing_else(told: Stored) -> None:
    drawn = page(told)
    found = Page(drawn)
    assert found.tags["svg"] >= 5
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    assert not [name for _, name, _ in found.attributes if name in {"src", "href", "srcset"}]
    assert "url(" not in drawn
    assert "@import" not in drawn
    assert "http" not in drawn.replace("xmlns", "")


def test_every_plot_says_what_it_is_and_every_number_is_finite(told: Stored) -> None:
    found = Page(page(told))
    plots = [value for tag, name, value in found.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(plots) == found.tags["svg"]
    assert all(plots)
    numbers = {"x", "y", "x1", "x2", "y1", "y2", "width", "height", "cx", "cy", "r"}
    for tag, name, value in found.attributes:
        if tag in VOID - {"meta"} and name in numbers:
            assert re.fullmatch(r"-?\d+(\.\d)?", value), (tag, name, value)


def test_the_page_shows_the_scores_of_dev(told: Stored) -> None:
    drawn, dev = page(told), facts_of(told)["dev"]
    assert f"<dt>F1, strict</dt><dd>{dev['f1']:.1f}</dd>" in drawn
    assert f"error {dev['raw_calibration_error']:.4f}" in drawn
    for group in (*dev["by_length"].items(), *list(dev["by_label"].items())[:LABELS]):
        shown = f"<title>{group[0]}: precision {group[1]['precision']:.1f}" in drawn
        assert shown is (group[1]["count"] > 0)
    assert "41+" not in drawn  # there are no such sentences
    assert "64 sentences of the dev trees" in drawn


def test_the_page_shows_stages_sizes_and_spectra(told: Stored) -> None:
    drawn, facts = page(told), facts_of(told)
    for stage in facts["stages"]:
        assert f"<title>{stage['name']}: {stage['seconds']:.2f} s" in drawn
    for size in facts["sizes"].values():
        assert f"<td>{size:,}</td>" in drawn
    shown = re.findall(r"<title>([^<]*): ([\d,]+) nodes, (\d+) states", drawn)
    counts_of = facts["symbols"]
    counts = list(counts_of.items())[:SYMBOLS]
    spectral = facts["members"][0]
    states = dict(zip(spectral["singular_values"], spectral["states"], strict=True))
    assert [name.replace("&lt;", "<") for name, _, _ in shown] == [name for name, _ in counts]
    assert [int(n) for _, n, _ in shown] == [count for _, count in counts]
    assert [int(n) for _, _, n in shown] == [states[name] for name, _ in counts]
    assert f"hash <code>{told.reference.hash}</code>" in drawn
    assert "not a guarantee" in drawn
    for name, values in spectral["singular_values"].items():
        least = f"{values[states[name] - 1]:.3g}" if values else "–"
        cells = f"<td>{counts_of[name]:,}</td><td>{states[name]}</td><td>{least}</td>"
        assert cells in drawn.replace("\n", "")


def test_symbols_are_counted_most_frequent_first(told: Stored) -> None:
    counts = facts_of(told)["symbols"]
    assert sum(counts.values()) == facts_of(told)["sizes"]["nodes"]
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


def test_an_evaluation_takes_the_place_of_the_scores_of_dev(told: Stored) -> None:
    scores = {**facts_of(told)["dev"], "f1": 12.34, "sentences_per_second": 432.1}
    drawn = page(told, Evaluation("a<b>.mrg", scores))
    assert "<dd>12.3</dd>" in drawn
    assert "<dt>sentences a second</dt><dd>432</dd>" in drawn
    assert "sentences of a&lt;b&gt;.mrg" in drawn
    assert "when it was trained" not in drawn


def test_a_model_without_facts_has_a_shorter_page(store: Path) -> None:
    drawn = page(load("mute", store))
    assert re.findall("<h2>(.*?)</h2>", drawn) == ["Sizes"]
    assert "mute@1" in drawn


def test_arrays_are_grouped_by_purpose(told: Stored) -> None:
    drawn = page(told)
    sizes = {
        name: int(n.replace(",", ""))
        for name, n in re.findall(r"<title>([\w ]+): ([\d,]+) bytes", drawn)
    }
    assert {"grammar", "lexicon", "coarse", "fallback", "member 1", "member 2"} <= set(sizes)
    lexicon = (one.nbytes for name, one in told.tensors.items() if name.startswith("lexicon."))
    assert sizes["lexicon"] == sum(lexicon)
    assert sum(sizes.values()) == sum(array.nbytes for array in told.tensors.values())


# Models of all kinds ------------------------------------------------------------------------------


def spanish() -> str:
    """Write 120 sentences with labels and tags like those of Spanish treebanks."""
    women, men = ("niña", "mujer", "casa", "montaña", "0,7"), ("libro", "árbol", "señor", "1.º")
    verbs = ("ve", "tendrá", "busca", "elevó", "quería", "lleva")
    return "\n".join(
        f"(S (sn-SUJ (espec.fs (da0fs0 la)) (grup.nom.fs (ncfs000 {she}))) (grup.verb "
        f"(vmip3s0 {verb})) (sn-CD (espec.ms (di0ms0 un)) (grup.nom.ms (ncms000 {he}) (sp (prep "
        f"(sps00 de)) (snn (grup.nom (Z 10)))))) (Fp .))"
        if number % 3
        else f"(S (S.NF.A.co-CC (S.NF.C (infinitiu (vmn0000 ver)) (sn-CD (grup.nom.ms (ncms000 "
        f"{he}))))) (Fc ,) (morfema.verbal-PASS (p0000000 se)) (grup.verb (vmip3s0 {verb})) (Fp .))"
        for number, (she, he, verb) in enumerate(product(women, men, verbs))
    )


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of models that `lpcfg train` makes with other options and other trees."""
    folder = tmp_path_factory.mktemp("kinds")
    trees = folder / "spanish.mrg"
    trees.write_text(spanish(), encoding="utf-8")
    small, everyday = str(SMALL), str(EVERYDAY)
    for name, given in {
        "fresh": (everyday, "--dev", small),
        "layerless": (everyday, "--rescore", "none", "--dev", small),
        "spanish": (str(trees), "--language", "spanish", "--dev", str(trees)),
        "literal": (small, "--rare-threshold", "0", "--estimator", "counts"),
        "adapted": (small, "--base", "fresh", "--dev", small),
        "again": (everyday, "--base", "adapted"),
    }.items():
        assert main(["train", *given, "--name", name, "--store", str(folder)]) == 0
    return folder


def reported(model: str, store: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, Any]:
    """Return what the command writes: the page, which is well-formed, and the object of --json."""
    capsys.readouterr()
    assert main(["report", model, "--store", str(store)]) == 0
    drawn = capsys.readouterr().out
    assert Page(drawn).tags["svg"]
    assert main(["report", model, "--store", str(store), "--json"]) == 0
    return drawn, json.loads(capsys.readouterr().out)


def scored(drawn: str, dev: Any) -> bool:
    return f"<dt>F1, strict</dt><dd>{dev['f1']:.1f}</dd>" in drawn


STORED = sorted(f"{path.parent.name}@{path.name}" for path in MODELS.glob("*/[0-9]*"))
DEPENDENCIES = [name for name in STORED if name.startswith("en-dep@")]


@pytest.mark.parametrize("model", sorted({*STORED} - {*DEPENDENCIES}))
def test_every_model_of_the_store_has_a_report(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, printed = reported(model, MODELS, capsys)
    assert scored(drawn, printed["facts"]["dev"])
    arrays = load(model, MODELS).tensors.values()
    assert sum(printed["arrays"].values()) == sum(array.nbytes for array in arrays)


@pytest.mark.parametrize("model", ["fresh", "layerless", "spanish", "literal", "adapted", "again"])
def test_every_kind_of_trained_model_has_a_report(
    model: str, kinds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, printed = reported(model, kinds, capsys)
    dev = printed["facts"]["dev"]
    titles = re.findall("<h2>(.*?)</h2>", drawn)
    assert ("F1 by length and by label" in titles) is (dev is not None)
    assert dev is None or scored(drawn, dev)
    assert ("rescoring" in printed["arrays"]) is (model not in {"layerless", "literal"})
    assert {"Sizes", "What training took", "Where it comes from"} <= {*titles}


def test_the_lines_drawn_are_the_maps_of_what_was_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those of the layer, one for each kind of text; the tensors' own where there is no layer."""
    layer: Any = load("en@2", MODELS).grammar["rescoring"]
    drawn, printed = reported("en@2", MODELS, capsys)
    maps = layer["kind_calibrations"]
    assert {"": printed["calibration_map"], **printed["kind_calibration_maps"]} == maps
    assert "" in maps  # in place of the layer's map for all kinds
    assert drawn.count('class="curve"') == len(maps) == 4
    assert "The lines are its maps, one for each kind of text" in drawn
    drawn, printed = reported("en@1", MODELS, capsys)
    assert printed["calibration_map"] == load("en@1", MODELS).grammar["calibration"]
    assert printed["kind_calibration_maps"] == {}
    assert "The line is its map" in drawn
    assert drawn.count('class="curve"') == 1


def test_labels_of_spanish_trees_are_drawn(kinds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn, printed = reported("spanish", kinds, capsys)
    assert {"grup.nom.fs", "S.NF.C", "morfema.verbal"} <= printed["evaluation"]["by_label"].keys()
    for label in ("grup.nom.fs", "S.NF.C", "morfema.verbal"):
        assert f"<title>{label}: precision" in drawn


def test_an_adapted_model_is_said_to_be_one(
    kinds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, printed = reported("adapted", kinds, capsys)
    assert "Adapted from fresh@1 to 64 trees of 478 words" in drawn
    assert "Never seen in training" not in drawn  # the base has its training trees no longer
    assert printed["facts"]["base"]["model"] == "fresh@1"
    drawn, _ = reported("again", kinds, capsys)
    assert "Adapted from adapted@1 to 289 trees" in drawn
    assert "Adapted from" not in reported("fresh", kinds, capsys)[0]


@pytest.mark.parametrize("model", DEPENDENCIES)
def test_a_model_of_another_kind_has_scores_sizes_and_facts_in_tables(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, printed = reported(model, MODELS, capsys)
    ((file, dev),) = printed["facts"]["dev"].items()
    assert re.findall("<h2>(.*?)</h2>", drawn) == [
        f"Scores on {file}",
        "Sizes",
        "What it was learned from, and how",
    ]
    assert f"<td>uas</td><td>{dev['uas']:.4g}</td>" in drawn
    learned = printed["facts"]["learned_from"]["sentences"]
    assert f"<td>learned from.sentences</td><td>{learned:,}</td>" in drawn
    assert printed["evaluation"] == {"on": file, **dev}
    arrays = load(model, MODELS).tensors.values()
    assert sum(printed["arrays"].values()) == sum(array.nbytes for array in arrays)


# Plots --------------------------------------------------------------------------------------------


def attributes(svg: str, tag: str, kind: str) -> list[dict[str, float]]:
    return [
        {name: float(n) for name, n in re.findall(r'(\w+)="(-?[\d.]+)"', found)}
        for found in re.findall(f"<{tag} [^>]*>", svg)
        if f'class="{kind}"' in found
    ]


def test_bars_are_as_long_as_their_values() -> None:
    drawn = bars(
        [Bar("a", 50, "", "t"), Bar("b", 100, "", "t"), Bar("c", 0, "", "t", (25.0,))],
        label="x",
        most=100,
    )
    first, second, third = attributes(drawn, "rect", "bar")
    assert first["width"] == pytest.approx(second["width"] / 2, abs=0.1)
    assert third["width"] == 0
    (tick,) = attributes(drawn, "line", "tick")
    assert tick["x1"] - third["x"] == pytest.approx(second["width"] / 4, abs=0.1)
    assert "<title>t</title>" in bars([Bar("a", 0, "", "t")], label="no length", most=0)


def test_a_calibrated_dot_is_on_the_diagonal_and_heavier_ones_are_larger() -> None:
    drawn = reliability(
        [Mark(0, 0, 1, ""), Mark(0.25, 0.25, 100, ""), Mark(1, 1, 25, "")],
        [[(0, 0), (1, 1)], [(0, 0), (1, 0.5)]],
        label="x",
    )
    (diagonal,) = attributes(drawn, "line", "diagonal")
    low, middle, high = attributes(drawn, "circle", "dot")
    assert (low["cx"], low["cy"]) == (diagonal["x1"], diagonal["y1"])
    assert (high["cx"], high["cy"]) == (diagonal["x2"], diagonal["y2"])
    assert middle["cx"] - low["cx"] == low["cy"] - middle["cy"] > 0
    assert low["r"] < high["r"] < middle["r"]
    assert drawn.count('class="curve"') == 2
    assert "circle" not in reliability([], (), label="no items")


def test_every_label_has_room_beside_its_bar_or_squares() -> None:
    names = ["NP", "grup.nom.fs", "sadv|grup.adv|rg", "x" * 60]
    drawn = [bars([Bar(name, 1, "", "") for name in names], label="x", most=1)]
    drawn += [heat([(name, [1.0], 1, "") for name in names], columns=1, label="x")]
    for svg in drawn:
        ends = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="label end">(.*?)</text>', svg)
        assert [name for _, name in ends] == names
        assert all(float(end) >= 7 * len(name) for end, name in ends)  # of 12 pixels in height


def test_heat_frames_the_kept_singular_values() -> None:
    drawn = heat([("NP<a", [1.0, 0.5, 0.1], 2, "title")], columns=3, label="x")
    assert re.findall('fill-opacity="([^"]*)"', drawn) == ["1.000", "0.500", "0.100"]
    (kept,) = attributes(drawn, "rect", "kept")
    squares = attributes(drawn, "rect", "heat")
    assert kept["width"] == 2 * (squares[1]["x"] - squares[0]["x"])
    assert "NP&lt;a" in drawn


# The command --------------------------------------------------------------------------------------


def test_report_prints_the_page(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "told", "--store", str(store)]) == 0
    assert capsys.readouterr().out == page(load("told", store))


def test_report_as_json_holds_what_the_page_shows(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "told.html"
    assert main(["report", "told", "--store", str(store), "--json", "-o", str(file)]) == 0
    printed, stored = json.loads(capsys.readouterr().out), load("told", store)
    assert file.read_text(encoding="utf-8") == page(stored)
    assert printed["page"] == str(file)
    assert (printed["name"], printed["version"]) == ("told", 1)
    assert (printed["hash"], printed["facts"]) == (stored.reference.hash, facts_of(stored))
    evaluation = printed["evaluation"]
    assert evaluation.pop("on") == "the dev trees, when it was trained"
    assert evaluation == facts_of(stored)["dev"]
    assert printed["calibration_map"] == stored.grammar.get("calibration")
    assert printed["files"]["CARD.md"] == len(stored.card.encode())
    assert sum(printed["arrays"].values()) == sum(array.nbytes for array in stored.tensors.values())


def test_report_as_json_writes_no_page_unless_asked(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "mute", "--store", str(store), "--treebank", str(SMALL), "--json"]
    assert main(command) == 0
    (line,) = capsys.readouterr().out.splitlines()
    printed = json.loads(line)
    assert (printed["page"], printed["facts"]) == (None, {})
    assert printed["evaluation"]["on"] == "small.mrg, predicted tags"
    assert printed["evaluation"]["sentences"] == 64


@pytest.mark.parametrize(
    ("output", "problem"),
    [(".", "which is a folder: add"), ("no/page.html", "but there is no folder .*no: make it")],
)
def test_report_fails_before_it_evaluates_if_it_cannot_write(
    output: str, problem: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "mute", "--store", str(store), "--treebank", str(SMALL)]
    assert main([*command, "--output", str(tmp_path / output)]) == 1
    shown = capsys.readouterr()
    assert re.fullmatch(f"lpcfg: error: expected a file to write, got .*, {problem}.*\n", shown.err)


def test_report_evaluates_on_a_treebank_and_writes_a_file(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mute.html"
    command = ["report", "mute", "--store", str(store), "--treebank", str(SMALL), "--tags", "gold"]
    assert main([*command, "--output", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"lpcfg: mute@1 is drawn in {file}" in printed.err
    assert (
        main(["evaluate", "mute", str(SMALL), "--store", str(store), "--tags", "gold", "--json"])
        == 0
    )
    f1 = json.loads(capsys.readouterr().out)["f1"]
    drawn = file.read_text(encoding="utf-8")
    assert f"<dt>F1, strict</dt><dd>{f1:.1f}</dd>" in drawn
    assert "64 sentences of small.mrg, gold tags" in drawn
    assert "This model has no map" in drawn


def test_report_wants_trees_with_words(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "traces.mrg"
    file.write_text("(S (NP (-NONE- *)))", encoding="utf-8")
    assert main(["report", "mute", "--store", str(store), "--treebank", str(file)]) == 1
    assert "expected trees with words in" in capsys.readouterr().err
