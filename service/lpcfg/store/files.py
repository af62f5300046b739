"""The files of one version: write a bundle as bytes, verify the bytes, read them back.

The manifest lists the size and SHA-256 of every other file and ends with a seal over itself, so no
bit of a version can change unnoticed.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict, cast

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from lpcfg.base.errors import StoreError
from lpcfg.base.files import EntryType
from lpcfg.store.cache import Cache, sha256
from lpcfg.store.storage import MANIFEST, ManifestOf, Storage

TENSORS = "tensors.safetensors"
GRAMMAR = "grammar.json"
CARD = "CARD.md"
FORMAT = "lpcfg-model"
FORMAT_VERSION = 1

DTYPES = {
    "f8": "F64", "f4": "F32", "f2": "F16", "b1": "BOOL",
    "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8",
    "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8",
}  # fmt: skip
_NUMPY = {name: f"<{code}" for code, name in DTYPES.items()}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # half of a character above U+FFFF, escaped
_RESTORE = "it was altered or damaged after publishing: restore it from a copy or publish again"
_REPUBLISH = "what wrote it went wrong: publish the model again"

Tensors = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Bundle:
    """The content of a version: named arrays, a JSON object, facts and a model card."""

    tensors: Tensors
    grammar: Mapping[str, object]
    facts: Mapping[str, object]
    card: str


class _FileFacts(TypedDict):
    bytes: int
    sha256: str


class _TensorFacts(TypedDict):
    dtype: str
    shape: list[int]


class Manifest(TypedDict):
    format: str
    format_version: int
    name: str
    version: int
    created: str
    facts: dict[str, object]
    tensors: dict[str, _TensorFacts]
    files: dict[str, _FileFacts]
    seal: str


_MANIFEST_FIELDS = {
    "format": str,
    "format_version": int,
    "name": str,
    "version": int,
    "created": str,
    "facts": dict,
    "tensors": dict,
    "files": dict,
    "seal": str,
}
_FILES = {CARD: dict, GRAMMAR: dict, TENSORS: dict}
_FILE_FIELDS = {"bytes": int, "sha256": str}
_TENSOR_FIELDS = {"dtype": str, "shape": list}


@dataclass(frozen=True)
class Place:
    """The location of one version."""

    storage: Storage
    store: str
    name: str
    version: int

    @property
    def folder(self) -> str:
        return f"{self.name}/{self.version}"

    def where(self, file: str) -> str:
        return self.storage.where(f"{self.folder}/{file}")

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


def encode(name: str, bundle: Bundle) -> tuple[dict[str, bytes], ManifestOf]:
    """Encode a bundle as files, and return a function that makes the manifest.

    The manifest contains the version number, which is only known when the version is published.
    """
    files = {
        CARD: _encode_text(bundle.card, CARD),
        GRAMMAR: _encode_json(bundle.grammar, GRAMMAR),
        TENSORS: _encode_tensors(bundle.tensors),
    }
    listed = {file: {"bytes": len(data), "sha256": sha256(data)} for file, data in files.items()}
    rest = {
        "created": _now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "facts": bundle.facts,
        "tensors": {key: _tensor_facts(array) for key, array in bundle.tensors.items()},
        "files": listed,
    }
    _encode_json(bundle.facts, MANIFEST)  # raises before anything is written

    def manifest_of(version: int) -> bytes:
        first = {"format": FORMAT, "format_version": FORMAT_VERSION}
        return _seal({**first, "name": name, "version": version, **rest})

    return files, manifest_of


def _now() -> datetime:
    return datetime.now(UTC)


def join(items: Iterable[object]) -> str:
    return ", ".join(map(str, items)) or "none"


def _encode_text(text: str, file: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise StoreError(f"expected text that has a UTF-8 form for {file}: {error}") from error


def _encode_json(value: Mapping[str, object], file: str, indent: int | None = None) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"expected a JSON value for {file}: {error}: use plain dicts, lists, strings, "
            "booleans, None and finite Python numbers"
        ) from error
    return _encode_text(text, file)


def _seal(fields: Mapping[str, object]) -> bytes:
    """Write the manifest's text.

    Its last field is the SHA-256 of the text with 64 zeros in its place.
    """
    text = _encode_json({**fields, "seal": "0" * 64}, MANIFEST, indent=2) + b"\n"
    return text[:-68] + sha256(text).encode() + text[-4:]


def _tensor_facts(array: NDArray[Any]) -> _TensorFacts:
    return {"dtype": DTYPES[array.dtype.str[1:]], "shape": list(array.shape)}


def _encode_tensors(tensors: Tensors) -> bytes:
    for name, array in tensors.items():
        if array.dtype.str[1:] not in DTYPES or name == "__metadata__":
            raise StoreError(
                f"expected tensors of {join(DTYPES.values())} under names other than "
                f"`__metadata__`, got `{name}` of dtype {array.dtype}: convert or rename it"
            )
    # safetensors writes the memory as it is, so a transposed view would be read back scrambled.
    plain = {
        name: np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        for name, array in tensors.items()
    }
    return safetensors.numpy.save(plain)


def read_files(
    place: Place, manifest: Manifest, cache: Cache | None = None
) -> dict[str, memoryview]:
    """Map every file except the manifest. Each must have its recorded size and hash.

    Files that a cache has are not read from the store; it keeps those that it does not have.
    """
    _check_listing(place)
    found = {}
    for file, facts in manifest["files"].items():
        data = None if cache is None else cache.get(facts["sha256"])
        if data is None:
            data = _read_file(place, file, facts)
            if cache is not None:
                cache.keep(facts["sha256"], data)
        found[file] = data
    return found


def decode(place: Place, files: Mapping[str, memoryview], manifest: Manifest) -> Bundle:
    """Decode the bundle in verified files."""
    return Bundle(
        _decode_tensors(files[TENSORS], manifest["tensors"], place.where(TENSORS)),
        _parse_json(files[GRAMMAR], place.where(GRAMMAR)),
        manifest["facts"],
        _decode_text(files[CARD], place.where(CARD)),
    )


def _refuse(where: str, expected: object, found: object, cure: str = _RESTORE) -> StoreError:
    return StoreError(f"{where}: expected {expected}, found {found}: {cure}")


def read_manifest(place: Place) -> tuple[bytes, Manifest]:
    """Read the manifest. Check its seal, its form, and that it belongs to this version."""
    where = place.where(MANIFEST)
    _check_is_file(place.storage.entries(place.folder).get(MANIFEST), where)
    data = place.storage.read(f"{place.folder}/{MANIFEST}")
    _check_seal(data, where)
    value = _parse_json(data, where)
    _check_format(value, where)
    manifest = _check_fields(value, where)
    named = f"{manifest['name']}@{manifest['version']}"
    if named != str(place):
        cure = "put each version back into its own folder or publish again"
        raise _refuse(where, f"the manifest of {place}", f"that of {named}", cure)
    return data, manifest


def _check_seal(data: bytes, where: str) -> None:
    seal = sha256(data[:-68] + b"0" * 64 + data[-4:])
    if data[-68:-4] != seal.encode():
        raise _refuse(where, f"the seal {seal}", f"{data[-68:-4]!r} before its last 4 bytes")


def _check_fields(value: dict[str, object], where: str) -> Manifest:
    _check_record(value, _MANIFEST_FIELDS, where)
    manifest = cast(Manifest, value)
    _check_record(manifest["files"], _FILES, f"{where} at /files")
    for file, facts in manifest["files"].items():
        _check_record(facts, _FILE_FIELDS, f"{where} at /files/{file}")
    for name, tensor in manifest["tensors"].items():
        _check_record(tensor, _TENSOR_FIELDS, f"{where} at /tensors/{name}")
        if tensor["dtype"] not in DTYPES.values():
            expected = f"a dtype out of {join(DTYPES.values())}"
            raise _refuse(f"{where} at /tensors/{name}", expected, tensor["dtype"], _REPUBLISH)
    return manifest


def _check_format(value: Mapping[str, object], where: str) -> None:
    if value.get("format") != FORMAT:
        cure = "this is no model of this package: name another"
        raise _refuse(where, f"the format `{FORMAT}`", repr(value.get("format")), cure)
    if value.get("format_version") != FORMAT_VERSION:
        cure = "use the release of this package that wrote it, or publish the model again"
        raise _refuse(where, f"format version {FORMAT_VERSION}", value.get("format_version"), cure)


def _check_record(value: object, fields: Mapping[str, type], where: str) -> None:
    """Refuse anything but an object with exactly these fields, each of its type."""
    if not isinstance(value, dict):
        raise _refuse(where, "an object", f"a {type(value).__name__}")
    if value.keys() != fields.keys():
        raise _refuse(where, f"the fields {join(sorted(fields))}", join(sorted(value)))
    for field, kind in fields.items():
        if type(value[field]) is not kind:  # isinstance would accept true as 1
            found = f"a {type(value[field]).__name__}"
            raise _refuse(where, f"a {kind.__name__} for `{field}`", found)


def _check_is_file(kind: EntryType | None, where: str) -> None:
    if kind != "file":
        raise _refuse(where, "a file", f"a {kind}" if kind else "nothing")


def _check_listing(place: Place) -> None:
    """Refuse a version's folder that has more or fewer files than its manifest lists."""
    kinds = place.storage.entries(place.folder)
    for file in _FILES:
        _check_is_file(kinds.get(file), place.where(file))
    for entry in sorted(kinds.keys() - _FILES.keys() - {MANIFEST}):
        cure = "move it elsewhere: a version holds its own files only"
        raise _refuse(place.where(entry), "no such entry", f"a {kinds[entry]}", cure)


def _read_file(place: Place, file: str, facts: _FileFacts) -> memoryview:
    path, where = f"{place.folder}/{file}", place.where(file)
    size = place.storage.size(path)
    if size != facts["bytes"]:
        raise _refuse(where, f"{facts['bytes']} bytes", size)
    data = place.storage.mapped(path)
    found = sha256(data)
    if found != facts["sha256"]:
        raise _refuse(where, f"SHA-256 {facts['sha256']}", found)
    return data


def _decode_text(data: bytes | memoryview, where: str) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise _refuse(where, "UTF-8", error, _REPUBLISH) from error


def _parse_json(data: bytes | memoryview, where: str) -> dict[str, object]:
    try:
        value: object = json.loads(_decode_text(data, where), parse_constant=_no_number)
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()  # raises for half of a surrogate pair
    except (ValueError, RecursionError) as error:
        raise _refuse(where, "JSON", error, _REPUBLISH) from error
    if not isinstance(value, dict):
        raise _refuse(where, "a JSON object", f"a {type(value).__name__}", _REPUBLISH)
    return value


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def _decode_tensors(data: memoryview, facts: Mapping[str, _TensorFacts], where: str) -> Tensors:
    """Decode the arrays, if the file's header lists the same ones as the manifest.

    Arrays of numbers stay in the file, mapped. Whole numbers of more than a byte are places in
    other arrays, which compiled loops do not check: those are copied, so that what was checked is
    used, even if somebody writes to the file.
    """
    start = 8 + int.from_bytes(data[:8], "little")
    header = _parse_json(data[8:start], where)
    header.pop("__metadata__", None)
    for name in sorted(header.keys() | facts.keys()):
        found, expected = _header_facts(header.get(name)), facts.get(name)
        if found != expected:
            raise _refuse(f"{where} `{name}`", expected, found, _REPUBLISH)
    try:
        tensors = _arrays(data[start:], header)
    except (TypeError, ValueError) as error:  # shapes that are none, or beyond NumPy's
        raise _refuse(where, "safetensors", error, _REPUBLISH) from error
    return tensors


def _arrays(data: memoryview, header: Mapping[str, Any]) -> Tensors:
    """Return the arrays of a header. Raise ValueError unless they fill the data without gaps."""
    tensors, at = {}, 0
    for name, entry in sorted(header.items(), key=lambda one: _offsets(*one)):
        begin, end = _offsets(name, entry)
        dtype = np.dtype(_NUMPY[entry["dtype"]])
        size = math.prod(map(_size, entry["shape"])) * dtype.itemsize
        if (begin, end) != (at, at + size):
            raise ValueError(f"`{name}` at {begin} to {end} instead of {at} to {at + size}")
        array = np.ndarray(entry["shape"], dtype, data if size else None, begin if size else 0)
        if (dtype.kind in "iu" and dtype.itemsize > 1) or not array.flags.aligned:
            array = array.copy()
        array.flags.writeable = False
        tensors[name], at = array, end
    if at != len(data):
        raise ValueError(f"{len(data)} bytes of data instead of {at}")
    return tensors


def _offsets(name: str, entry: Mapping[str, Any]) -> tuple[int, int]:
    begin, end = entry.get("data_offsets", ())
    if type(begin) is not int or type(end) is not int:
        raise ValueError(f"`{name}` at {begin!r} to {end!r}")
    return begin, end


def _size(size: object) -> int:
    if type(size) is not int or size < 0:
        raise ValueError(f"the size {size!r}")
    return size


def _header_facts(entry: object) -> object:
    if isinstance(entry, dict):
        return {key: entry.get(key) for key in _TENSOR_FIELDS}
    return entry
