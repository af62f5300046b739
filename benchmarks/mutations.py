"""Mutate stored models, seal them again, and count what becomes of them.

    python -m benchmarks.mutations --count 5000

Every mutation changes bytes, numbers, shapes, types or names of a version, and gives it the right
sizes, hashes and seal, as whoever can write a store may. Each is then loaded and used in a child
process: it is refused with a StoreError, or its model answers. Anything else is a fault: a
process that dies or hangs, or an error that is not a StoreError. Exit code 1 if there is one.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import safetensors.numpy
from benchmarks.environment import Record, environment
from tests import small_models
from tests.kinds.dependencies import small as small_dependencies
from tests.small_layers import random_layer

from lpcfg.base.errors import StoreError
from lpcfg.engine.objectives import OBJECTIVES
from lpcfg.grammar.tagging import FREQUENT
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.answer import analysis_json, marginals_json, tree_probability_json
from lpcfg.kinds.constituency.model import from_bundle, to_bundle
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.surprisal import SurprisalQuantiles
from lpcfg.kinds.dependencies import model as dependency_models
from lpcfg.kinds.dependencies.answer import parsed_json
from lpcfg.kinds.dependencies.predict import DependencyParser
from lpcfg.kinds.sentences import Sentence
from lpcfg.kinds.tags import model as tag_models
from lpcfg.kinds.tags.answer import tagged_json
from lpcfg.kinds.tags.chains import read as read_tagged
from lpcfg.kinds.tags.predict import SequenceTagger
from lpcfg.kinds.tags.train import Config, estimator_of, learn
from lpcfg.store.files import Bundle
from lpcfg.store.versions import load, publish

SENTENCES = (
    ("Yes",),
    ("the", "dog", "barked", "at", "the", "cat", "."),
    ("The", "cat", "that", "the", "dog", "saw", "slept", "in", "the", "old", "house", "."),
    (")", "1990", "zqx-7", "("),
)
FACTS = {"estimator": "spectral", "dev": {"f1": 90.5, "by_length": [{"count": 3}]}}
TOGETHER = 50
"""Mutations that one child process uses one after the other."""
Files = dict[str, bytes]


# Models -------------------------------------------------------------------------------------------


def bundles() -> dict[str, Bundle]:
    """Return small models that have among them all that a model can have."""
    model = small_models.spectral(members=2)
    line = MonotoneMap.from_lists([[0.0, 0.5, 1.0], [0.0, 0.25, 1.0]])
    layer = random_layer(model.grammar)
    full = replace(
        model,
        weights=(0.5, 1.0),
        calibration=line,
        surprisal=SurprisalQuantiles((5, 9), ((-1.0, 0.0, 2.0), (-2.0, 0.5, 3.0))),
        tagger=replace(model.tagger, classes={"rain": 3, "00": 0}),  # type: ignore[type-var]
        rescoring=replace(layer, frequent=model.lexicon.seen_at_least(FREQUENT)),
        rescored_calibration=line,
    )
    tagging = learn(read_tagged(small_models.SMALL), Config(estimator_of("spectral", states=4)))
    literal = replace(small_models.counts(rare_threshold=0), tagger=None)
    return {
        "full": to_bundle(full, facts=FACTS, card="# Full"),
        "exact": to_bundle(model, facts=FACTS, card="# Exact", exact=True),
        "literal": to_bundle(literal, facts=FACTS, card="# Literal"),
        "tags": tag_models.to_bundle(tagging[0], facts={}, card="# Tags"),
        "arcs": dependency_models.to_bundle(small_dependencies.model(), facts={}, card="# Arcs"),
    }


def use(folder: Path) -> str:
    """Load a version and use it in every way; return `refused` or `answered`."""
    try:
        stored = load(str(folder), folder.parent.parent)
        if stored.grammar.get("kind") == dependency_models.KIND:
            arcs = DependencyParser(dependency_models.from_bundle(stored), stored.reference)
            answers = [parsed_json(one) for one in arcs.parse(SENTENCES)]
            answers += [arcs.tree_probability(one.arcs) for one in arcs.parse(SENTENCES)]
        elif stored.grammar.get("kind") == tag_models.KIND:
            tagger = SequenceTagger(tag_models.from_bundle(stored), stored.reference)
            asked = [Sentence(tokens) for tokens in SENTENCES]
            answers = [tagged_json(tagger.tag(one)) for one in asked]
        else:
            answers = parsed(Parser(from_bundle(stored), reference=stored.reference))
        json.dumps([answers, stored.manifest["facts"]], ensure_ascii=False, allow_nan=False)
    except StoreError:
        return "refused"
    return "answered"


def parsed(parser: Parser) -> list[Any]:
    """Answer every kind of question about the sentences."""
    answers: list[Any] = []
    for tokens in SENTENCES:
        sentence = Sentence(tokens)
        for objective in OBJECTIVES:
            found = list(parser.predict([sentence], ParseOptions(k=2, objective=objective)))
            answers += map(analysis_json, found)
            trees = [parse.tree for parse in found[0].parses]
            answers += map(tree_probability_json, parser.tree_probability(trees))
        answers.append(marginals_json(parser.marginals(sentence, threshold=0.01)))
    return answers


# Mutations ----------------------------------------------------------------------------------------


def read(folder: Path) -> Files:
    """Read the files of a version."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def write(folder: Path, files: Files, manifest: dict[str, Any]) -> None:
    """Write a version with the right sizes, hashes and seal."""
    listed = manifest.get("files")
    for name in files if isinstance(listed, dict) else ():
        if isinstance(listed.get(name), dict):  # else mutated itself
            hashed = hashlib.sha256(files[name]).hexdigest()
            listed[name] = {"bytes": len(files[name]), "sha256": hashed}
    manifest = {key: value for key, value in manifest.items() if key != "seal"}
    text = json.dumps({**manifest, "seal": "0" * 64}, indent=2, ensure_ascii=False)
    whole = sealed(text.encode("utf-8", "surrogatepass") + b"\n")
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(whole if name == "manifest.json" else data)


def sealed(zeroed: bytes) -> bytes:
    """Put the seal in place of its zeros."""
    return zeroed[:-68] + hashlib.sha256(zeroed).hexdigest().encode() + zeroed[-4:]


def mutated(files: Files, seed: int) -> tuple[Files, dict[str, Any]]:
    """Return the files of a version after one to three mutations, and its manifest."""
    chance = random.Random(seed)
    manifest = json.loads(files["manifest.json"])
    files = dict(files)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        chance.choice(KINDS)(chance, files, manifest)
    return files, manifest


def mutate_bytes(chance: random.Random, files: Files, manifest: dict[str, Any]) -> None:
    """Overwrite some bytes of the data of the tensors."""
    del manifest
    data = bytearray(files["tensors.safetensors"])
    start = 8 + int.from_bytes(data[:8], "little")
    for _ in range(chance.choice((1, 2, 8, 64))):
        if start < len(data):
            data[chance.randrange(start, len(data))] = chance.choice((0, 1, 127, 128, 255))
    files["tensors.safetensors"] = bytes(data)


def mutate_header(chance: random.Random, files: Files, manifest: dict[str, Any]) -> None:
    """Overwrite bytes of the header of the tensors, or of the JSON of the grammar."""
    del manifest
    name = chance.choice(("tensors.safetensors", "grammar.json"))
    data = bytearray(files[name])
    end = 8 + int.from_bytes(data[:8], "little") if name.startswith("t") else len(data)
    for _ in range(chance.choice((1, 2, 4))):
        data[chance.randrange(min(end, len(data)))] = chance.choice(b'0129-"[]{},.eEtf \x00\xff')
    files[name] = bytes(data)


def mutate_tensor(chance: random.Random, files: Files, manifest: dict[str, Any]) -> None:
    """Change numbers, shape, type or name of a tensor, in the header and the manifest alike."""
    try:
        tensors = dict(safetensors.numpy.load(files["tensors.safetensors"]))
    except (safetensors.SafetensorError, ValueError):
        return  # an earlier mutation left nothing to read
    name = chance.choice(sorted(tensors))
    changed = chance.choice(ARRAYS)(chance, tensors[name].copy())
    if changed is None:
        del tensors[name]
        if chance.random() < 0.3:
            tensors[chance.choice(("extra", f"{name}.", name.replace("0", "1")))] = np.zeros(3)
    else:
        tensors[name] = np.ascontiguousarray(changed)
    if chance.random() < 0.1:  # two tensors change places
        one, other = chance.choice(sorted(tensors)), chance.choice(sorted(tensors))
        tensors[one], tensors[other] = tensors[other], tensors[one]
    files["tensors.safetensors"] = safetensors.numpy.save(tensors)
    data = files["tensors.safetensors"]
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    manifest["tensors"] = {
        key: {field: header[key][field] for field in ("dtype", "shape")} for key in header
    }


Changed = np.ndarray[Any, Any] | None


def one_number(chance: random.Random, array: np.ndarray[Any, Any]) -> Changed:
    """Put one to four odd numbers into an array."""
    flat = array.view(np.uint8 if array.dtype == np.bool_ else array.dtype).reshape(-1)
    for _ in range(chance.choice((1, 1, 4))):
        if not flat.size:
            break
        odd: tuple[float, ...]
        if flat.dtype.kind == "f":
            odd = (0, -1, 1, 1e30, -1e30, 1e-30, 1e300, 1e-300, np.nan, np.inf, -np.inf, 65504, 7.5)
        else:
            info = np.iinfo(flat.dtype)
            odd = (0, 1, info.max, info.min, len(flat), int(flat.max()) + 1, int(flat.min()) - 1)
        value = chance.choice(odd)
        if isinstance(value, int) and flat.dtype.kind != "f":
            wrapped = value % (1 << 8 * flat.itemsize)
            value = np.array(wrapped, f"u{flat.itemsize}").view(flat.dtype)
        with np.errstate(over="ignore"):
            flat[chance.randrange(flat.size)] = value
    return array


def all_numbers(chance: random.Random, array: np.ndarray[Any, Any]) -> Changed:
    """Scale, shift, shuffle or overwrite all numbers."""
    generator = np.random.default_rng(chance.randrange(1 << 30))
    with np.errstate(all="ignore"):
        how = chance.randrange(6)
        if how == 0:
            return generator.permuted(array.reshape(-1)).reshape(array.shape)
        if how == 1:
            return np.zeros_like(array)
        if how == 2:
            return (array * chance.choice((-1, 2, 1e-20, 1e10, 1e30))).astype(array.dtype)
        if how == 3:
            return (array + array.dtype.type(1)).astype(array.dtype)
        if how == 4:
            return array.reshape(-1)[::-1].reshape(array.shape)
        return np.frombuffer(generator.bytes(array.nbytes), array.dtype).reshape(array.shape)


def shape(chance: random.Random, array: np.ndarray[Any, Any]) -> Changed:
    """Change the shape: cut, lengthen, flatten, transpose, or empty."""
    how = chance.randrange(6)
    if how == 0:
        return array[:-1]
    if how == 1:
        return np.concatenate([array, array[-1:]])
    if how == 2:
        return array.reshape(-1)
    if how == 3:
        return array.T
    if how == 4:
        return array[:0]
    return array[..., None]


def dtype(chance: random.Random, array: np.ndarray[Any, Any]) -> Changed:
    """Change the type, of the numbers or of their bytes alone."""
    kinds = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
    wanted = np.dtype(chance.choice(kinds))
    if chance.random() < 0.5 and wanted.itemsize == array.itemsize and wanted.kind != "b":
        return array.view(wanted)
    with np.errstate(all="ignore"):
        return array.astype(wanted)


def removed(chance: random.Random, array: np.ndarray[Any, Any]) -> Changed:
    """Remove the tensor."""
    del chance, array
    return None


ARRAYS: Sequence[Callable[[random.Random, np.ndarray[Any, Any]], Changed]] = (
    *(one_number,) * 5,
    *(all_numbers,) * 2,
    *(shape,) * 2,
    dtype,
    removed,
)


def mutate_json(chance: random.Random, files: Files, manifest: dict[str, Any]) -> None:
    """Change a value somewhere in grammar.json, or in the manifest but for its hashes."""
    grammar = chance.random() < 0.8
    try:
        root = json.loads(files["grammar.json"]) if grammar else manifest
    except ValueError:
        return  # an earlier mutation left nothing to read
    holder, key = root, chance.choice(sorted(root))
    while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.8:
        holder = holder[key]
        keys = sorted(holder) if isinstance(holder, dict) else range(len(holder))
        key = chance.choice(keys)
    how = chance.randrange(4)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, holder[chance.randrange(len(holder))])
    elif how == 2 and isinstance(holder, dict):
        holder[f"{key}'"] = holder.pop(key)
    else:
        holder[key] = chance.choice(ODD)
    if grammar:
        text = json.dumps(root, ensure_ascii=chance.random() < 0.5)
        files["grammar.json"] = text.encode("utf-8", "surrogatepass")


ODD: Sequence[Any] = (
    *(None, True, 0, 1, -1, 2, 7, 1 << 31, 1 << 63, 10**400, 0.5, -0.5, 1e300, 1e-300),
    *(float("nan"), float("inf"), "", "x", "@", "@X<Y", "S|S", "\x00any", "\ud800", "|" * 500),
    *([], {}, [0], ["x"], [[0, 1], [0, 1]], {"x": 1}, [[[]]]),
)
KINDS = (mutate_bytes, mutate_bytes, mutate_header, mutate_json, mutate_json, *(mutate_tensor,) * 4)


# The benchmark ------------------------------------------------------------------------------------


def fates(folders: Sequence[Path], seconds: int) -> Iterator[tuple[str, str]]:
    """Use versions in a child process; what became of each, and the error if it is a fault.

    A child that dies has told what became of those before; another goes on behind its last.
    """
    left = list(folders)
    while left:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _use_all(left, writing, seconds)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            for line in pipe:
                yield tuple(json.loads(line))
                del left[0]
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            yield ("hung" if name == "SIGALRM" else "killed"), name
            del left[0]


def _use_all(folders: Sequence[Path], writing: int, seconds: int) -> NoReturn:
    """Use versions and write what becomes of each; end this process."""
    for folder in folders:
        signal.alarm(seconds)
        outcome, why = "raised", ""
        try:
            outcome = use(folder)
        except BaseException:
            why = traceback.format_exc()[-3000:]
        os.write(writing, json.dumps([outcome, why]).encode() + b"\n")
    os._exit(0)


def run(count: int, seed: int) -> Record:
    """Mutate, use and count; print every fault."""
    started, counted = time.perf_counter(), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        originals = []
        for name, bundle in bundles().items():
            publish(place, name, bundle)
            assert use(Path(place) / name / "1") == "answered"  # and compiles for the children
            originals.append(Path(place) / name / "1")
        for first in range(seed, seed + count, TOGETHER):
            seeds = range(first, min(first + TOGETHER, seed + count))
            folders = []
            for number in seeds:
                original = originals[number % len(originals)]
                folders.append(Path(place) / f"mutated-{number}" / original.parent.name / "1")
                write(folders[-1], *mutated(read(original), number))
            for number, (outcome, why) in zip(seeds, fates(folders, 60), strict=True):
                counted[outcome] += 1
                if outcome not in ("refused", "answered"):
                    print(f"{outcome}: seed {number}\n{why}", flush=True)
            for folder in folders:
                shutil.rmtree(folder.parent.parent)
    return {
        "what": "resealed mutations",
        "count": count,
        **{name: counted[name] for name in ("refused", "answered", "raised", "killed", "hung")},
        "seconds": round(time.perf_counter() - started, 1),
        **environment(seed),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    record = run(arguments.count, arguments.seed)
    print(json.dumps(record))
    return 1 if record["raised"] + record["killed"] + record["hung"] else 0


if __name__ == "__main__":
    sys.exit(main())
