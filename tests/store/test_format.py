"""The stored form of a model: model_store/FORMAT.md names all of it, and says how to use it.

`Stranger` follows that page. Trees aside, it uses no code of the package, and no NumPy but for its
arrays.
"""

import json
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpcfg.grammar.tagging import FREQUENT
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.model import Model, from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.surprisal import SurprisalQuantiles
from lpcfg.store.files import Bundle
from lpcfg.store.versions import load, publish
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import parse_tree
from lpcfg.trees.tree import Tree
from tests import small_models
from tests.small_layers import random_layer
from tests.small_models import SMALL

PAGE = Path(__file__).resolve().parents[2] / "model_store" / "FORMAT.md"
ENDINGS = re.findall(r"ends in of \*([^*]+)\*", PAGE.read_text(encoding="utf-8"))[0].split()
FEATURES = [
    *(((0, k), None) for k in range(11)),
    *(((-1, code), None) for code in (0, 10, 4)),
    *(((1, code), None) for code in (0, 10, 4)),
    *(((-1, 10), (0, 10)), ((1, 10), (0, 10)), ((-2, 0), None), ((2, 0), None)),
    *(((-1, 0), (0, 1)), ((1, 0), (0, 1)), ((-1, 0), (1, 0))),
    *(((-1, 3), (0, 4)), ((1, 3), (0, 4)), (None, None)),
    *(((0, 11), None), ((-1, 11), None), ((1, 11), None)),
    *(((0, 11), (0, 10)), ((0, 11), (0, 3)), ((-1, 11), (1, 11))),
]
MODULUS = 1 << 48


# What the page names ------------------------------------------------------------------------------


def documented(heading: str) -> set[str]:
    """List the names in the first column of the table under a heading."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"### {heading}\n")
    rows = re.findall(r"^\| (`[^|]*) \|", rest.partition("\n### ")[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


@cache
def trained() -> tuple[Model, Mapping[str, Any]]:
    """Train a model with everything that a model can have; return it and its facts."""
    config = TrainingConfig(
        sibling_threshold=2,
        members=(member("spectral", states=4), member("clustering+em", states=2)),
    )
    model, report = train(SMALL, config, dev=SMALL)
    line = MonotoneMap.from_lists([[0.0, 1.0], [0.0, 1.0]])
    weights = (1.0,) * len(model.members)
    surprisal = SurprisalQuantiles((5, 9), ((-1.0, 0.0, 2.0), (-2.0, 0.5, 3.0)))
    assert model.tagger is not None
    tagger = replace(model.tagger, classes={"rain": 3, "00": 0})
    layer = replace(random_layer(model.grammar), frequent=model.lexicon.seen_at_least(FREQUENT))
    model = replace(model, calibration=line, weights=weights, surprisal=surprisal, tagger=tagger)
    kinds = {"": line, "letters": MonotoneMap((0.0, 0.5, 1.0), (0.0, 0.25, 1.0))}
    model = replace(model, rescoring=layer, rescored_calibration=line, kind_calibrations=kinds)
    return model, json.loads(json.dumps(report.as_json()))


@cache
def stored(exact: bool = False) -> Bundle:
    return to_bundle(trained()[0], facts=trained()[1], card="", exact=exact)


def test_the_page_names_every_tensor_and_no_other() -> None:
    named = {re.sub(r"^members\.\d+", "members.K", name) for name in stored().tensors}
    assert documented("tensors.safetensors") == named
    assert set(stored(exact=True).tensors) < set(stored().tensors)


def test_the_page_names_the_dtype_of_every_tensor() -> None:
    letters = {"i": "I", "u": "U", "f": "F"}
    text = PAGE.read_text(encoding="utf-8")
    for name, array in stored().tensors.items():
        row = re.sub(r"^members\.\d+", "members.K", name)
        (told,) = re.findall(rf"^\| `{re.escape(row)}` \| ([^|]+) \|", text, re.MULTILINE)
        assert f"{letters[array.dtype.kind]}{8 * array.itemsize}" in told.split(" or "), name


def test_the_page_names_every_field_of_the_grammar_and_no_other() -> None:
    assert documented("grammar.json") - set(stored().grammar) == set()
    assert set(stored().grammar) - documented("grammar.json") == set()


def fields_of(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        parts = value if isinstance(value, list) else [value]
        if name in {"configuration", "symbols"}:
            yield name
        elif parts and all(isinstance(part, dict) for part in parts):
            yield from (f"{name}.{key}" for part in parts for key in part)
        else:
            yield name


def test_the_page_names_every_fact() -> None:
    facts = trained()[1]
    names = set(fields_of(facts)) - {"held_out"}  # nothing, of so few trees
    assert "rescoring.left_out" in names
    dev = facts["dev"]
    names |= {f"dev.parts.{key}" for part in dev["parts"] for key in part if key not in dev}
    told = documented("`facts` of the manifest")
    assert names <= told
    maps = "raw_calibration", "map", "rescored_raw_calibration", "rescored_map"
    kinds = "rescored_maps_of_kinds"
    held_out = {f"held_out.{name}" for name in ("trees", "weights", *maps, kinds)}
    layer = {"rescoring", "rescoring.trees", "rescoring.words"}
    apart = {"dev", "members", "stages", "members.singular_values", *held_out, *layer}
    assert told - names <= apart


# What the page is enough for ----------------------------------------------------------------------


class Stranger:
    """p(tree) from the stored tensors and the stored grammar alone."""

    def __init__(self, tensors: Mapping[str, Any], grammar: Mapping[str, Any]) -> None:
        self.tensors, self.grammar = tensors, grammar
        self.symbols = {name: a for a, name in enumerate(grammar["symbols"])}
        self.words = {word: w for w, word in enumerate(grammar["words"])}
        self.rules = {tuple(rule): r for r, rule in enumerate(tensors["rules"].tolist())}
        self.entries = {tuple(entry): e for e, entry in enumerate(tensors["entries"].tolist())}
        self.count = tensors["lexicon.symbol_count"].tolist()
        bottoms = {
            a: re.sub(r"%(25|7C|40|3C)", lambda m: chr(int(m[1], 16)), name.split("|")[-1])
            for a, name in enumerate(name.removesuffix("<") for name in grammar["symbols"])
            if a >= grammar["n_internal"]
        }
        self.tags = sorted(set(bottoms.values()))
        self.tag = {a: self.tags.index(bottom) for a, bottom in bottoms.items()}

    def probability(self, tree: Tree) -> float:
        stree = binarize(tree, horizontal=self.grammar["horizontal"])
        weights = iter(self.weights([leaf.word or "" for leaf in stree.leaves()]))
        symbol, *vectors = self.inside(stree, weights)
        values = [
            sum(f * c for f, c in zip(vector, self.root(k, symbol), strict=True))
            for k, vector in enumerate(vectors)
        ]
        return sum(values) / len(values)

    def inside(self, node: Tree, weights: Iterator[tuple[dict[int, float], int]]) -> list[Any]:
        """Compute a node's symbol, and its inside vector in every member."""
        a = self.symbol(node)
        members = range(self.grammar["members"])
        if not node.children:
            weight, terminal = next(weights)
            e = self.entries.get((a, terminal), self.entries.get((a, self.last_terminal())))
            assert e is not None
            return [a, *([weight[a] * c for c in self.c_inf(k, e)] for k in members)]
        left, right = (self.inside(child, weights) for child in node.children)
        r = self.rules[a, left[0], right[0]]
        return [a, *(self.applied(k, r, left[k + 1], right[k + 1]) for k in members)]

    def last_terminal(self) -> int:
        return len(self.grammar["terminals"]) - 1

    def symbol(self, node: Tree) -> int:
        if not node.children and node.label + "<" in self.symbols:
            return self.symbols[node.label + "<"]
        bare = node.label.partition("<")[0] if node.label.startswith("@") else node.label
        return self.symbols.get(node.label, self.symbols[bare])

    def states(self, k: int, a: int) -> int:
        return int(self.tensors[f"members.{k}.states"][a])

    def rows(self, k: int, name: str, sizes: list[int], row: int) -> list[float]:
        start = sum(sizes[:row])
        return self.tensors[f"members.{k}.{name}"][start : start + sizes[row]].tolist()

    def root(self, k: int, a: int) -> list[float]:
        return self.rows(k, "c_one", self.tensors[f"members.{k}.states"].tolist(), a)

    def c_inf(self, k: int, e: int) -> list[float]:
        sizes = [self.states(k, a) for a, _ in self.tensors["entries"].tolist()]
        scale = self.tensors.get(f"members.{k}.c_inf_scale")
        factor = 1.0 if scale is None else float(scale[e])
        return [factor * c for c in self.rows(k, "c_inf", sizes, e)]

    def applied(self, k: int, r: int, left: list[float], right: list[float]) -> list[float]:
        """Apply C of a rule to its children's inside vectors."""
        terms = self.tensors[f"members.{k}.terms"].tolist()
        rules = self.tensors["rules"].tolist()
        sides = []
        for side, name in enumerate(("parent", "left", "right")):
            m = self.states(k, rules[r][side])
            sizes = [n * self.states(k, s[side]) for n, s in zip(terms, rules, strict=True)]
            flat = self.rows(k, name, sizes, r)
            sides.append([flat[t * m : t * m + m] for t in range(terms[r])])
        scale = self.tensors.get(f"members.{k}.scale")
        first = sum(terms[:r])
        f = [0.0] * self.states(k, rules[r][0])
        for t, (p, on_left, on_right) in enumerate(zip(*sides, strict=True)):
            factor = 1.0 if scale is None else float(scale[first + t])
            factor *= sum(map(float.__mul__, on_left, left))
            factor *= sum(map(float.__mul__, on_right, right))
            f = [old + factor * value for old, value in zip(f, p, strict=True)]
        return f

    # Words

    def weights(self, words: list[str]) -> list[tuple[dict[int, float], int]]:
        """Compute for every word the weights of its preterminals and its terminal."""
        coded = [self.codes(word) for word in words]
        return [self.weight(word, self.scores(coded, i)) for i, word in enumerate(words)]

    def weight(self, word: str, score: list[float] | None) -> tuple[dict[int, float], int]:
        counts, known = self.counts(word)
        signatures = self.grammar["signatures"]
        found = [signatures.index(s) for s in self.signatures(word) if s in signatures]
        signature = found[0] if found else 0
        terminal = self.tensors["lexicon.signature_terminal"][signature]
        terminal = terminal if known is None else self.tensors["lexicon.word_terminal"][known]
        of_tag, of_all = defaultdict[int, float](float), defaultdict[int, float](float)
        for a, t in self.tag.items():
            of_tag[t] += counts.get(a, 0.0)
            of_all[t] += self.count[a]
        share = self.tensors["lexicon.share"][signature].tolist()
        alone = [of_tag[t] + share[t] for t in range(len(self.tags))]
        p = [one / sum(alone) for one in alone]
        if score is not None:
            gamma = self.grammar["tagger"]["gamma"]
            g = [math.exp(gamma * s) * n ** (1 - gamma) for s, n in zip(score, alone, strict=True)]
            p = [0.1 * one + 0.9 * other / sum(g) for one, other in zip(p, g, strict=True)]
        chains = {
            a: p[t] * (counts.get(a, 0.0) + 2 * self.count[a] / of_all[t]) / (of_tag[t] + 2)
            for a, t in self.tag.items()
        }
        n = max(sum(counts.values()), 0.5)
        least = max(chains.values()) / 10_000
        return {a: q * n / self.count[a] for a, q in chains.items() if q > least}, int(terminal)

    def counts(self, word: str) -> tuple[dict[int, float], int | None]:
        """Count how often a word was seen under its preterminals, and find the word that stands for
        it.
        """
        for spelling in (word, word.lower(), word.capitalize()):
            if spelling in self.words:
                w = self.words[spelling]
                seen = self.pairs(w)
                trust = 1.0 if spelling == word else min(1.0, 1.0 / sum(seen.values()))
                return {a: trust * n for a, n in seen.items()}, w
        return {}, None

    def pairs(self, w: int) -> dict[int, float]:
        start = self.tensors["lexicon.word_start"]
        pairs = slice(start[w], start[w + 1])
        symbols = self.tensors["lexicon.pair_symbol"][pairs].tolist()
        return dict(zip(symbols, self.tensors["lexicon.pair_count"][pairs].tolist(), strict=True))

    def signatures(self, word: str) -> Iterator[str]:
        shape, lower = shape_of(word), word.lower()
        ending = [s for s in ENDINGS if lower.endswith(s) and len(lower) >= len(s) + 2]
        if ending and self.grammar["language"] == "english":
            yield f"{shape}-{max(ending, key=len)}"
        if shape[0] not in "NP":
            yield from (f"{shape}~{lower[-n:]}" for n in (3, 2, 1) if n < len(lower))
        yield from (shape, shape[0])

    def codes(self, word: str) -> list[int]:
        shape, lower = f"s {shape_of(word)}", word.lower()
        seen = sum(self.pairs(self.words[word]).values()) if word in self.words else 0
        texts = [f"w {word}", f"l {lower}"] if seen >= 3 else [shape, "s"]
        texts += [f"-{n} {lower[-n:]}" for n in range(1, 6)]
        texts += [f"+{n} {lower[:n]}" for n in range(1, 4)]
        digits = "".join("0" if c.isdecimal() else c for c in lower)
        codes = [zlib.crc32(text.encode()) for text in (*texts, shape)]
        classes = self.grammar.get("word_classes", ())
        if digits not in classes:
            return [*codes, 0]
        number = classes.index(digits)
        return [*codes, zlib.crc32(f"c {self.tensors['tagger.class'][number]}".encode())]

    def scores(self, coded: list[list[int]], i: int) -> list[float] | None:
        if "tagger" not in self.grammar:
            return None
        weight, scale = self.tensors["tagger.weight"], self.tensors["tagger.scale"]
        total = [0.0] * len(self.tags)
        for k, places in enumerate(FEATURES if "word_classes" in self.grammar else FEATURES[:27]):
            one, other = (
                coded[i + place[0]][place[1]] if place and 0 <= i + place[0] < len(coded) else 0
                for place in places
            )
            x = (one * 0x9E3779B1 + other * 0x85EBCA77 + k * 0xC2B2AE3D) % MODULUS
            x ^= x >> 17
            x = x * 0x9E3779B1 % MODULUS
            h = (x ^ x >> 15) % len(scale)
            for t, value in enumerate(weight[h].tolist()):
                total[t] += float(scale[h]) * value
        return total


def shape_of(word: str) -> str:
    letters = "".join(c for c in word if c.isalpha())
    digits = any(map(str.isdigit, word))
    if not letters:
        case = "N" if digits else "P"
    elif letters.islower():
        case = "l"
    elif letters.isupper():
        case = "I" if len(letters) == 1 else "U"
    elif letters.istitle():
        case = "C"
    else:
        case = "o" if letters.lower() == letters.upper() else "M"
    marks = "d" if digits and case != "N" else ""
    marks += "-" if "-" in word[1:-1] else ""
    return case + marks + ("." if re.search(r"[^\w-]|_", word[1:-1]) else "")


NEW_WORDS = (
    "(S (NP (DT THE) (JJ well-known) (NN organization)) (VP (VBD saw) (NP (DT the) (NN X7-b.c)))"
    " (. .))"
)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("tagger", [False, True])
def test_the_page_is_enough_to_compute_the_probability_of_a_tree(
    tmp_path: Path, exact: bool, tagger: bool
) -> None:
    """Sums of products of float32 numbers, where this package adds up: 1e-4 of p(tree)."""
    model = trained()[0] if tagger else replace(trained()[0], tagger=None)
    publish(tmp_path, "small", to_bundle(model, facts={}, card="", exact=exact))
    version = load("small", tmp_path)
    stranger = Stranger(
        {name: np.array(array) for name, array in version.tensors.items()}, version.grammar
    )
    trees = [*small_models.trees()[::4], parse_tree(NEW_WORDS)]
    scores = Parser(from_bundle(version)).tree_probability(trees)
    for tree, score in zip(trees, scores, strict=True):
        assert score.log_probability is not None, score.reason
        expected = score.sign * math.exp(score.log_probability)
        assert stranger.probability(tree) == pytest.approx(expected, rel=1e-4)
