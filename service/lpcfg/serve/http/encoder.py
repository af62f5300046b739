"""Write values as JSON: all answers of the service are made here, and nowhere else.

Answers to single sentences are encoded by the threads that compute them: their size counts towards
the limit of an answer, and the cache keeps them. A value with such parts is a dict or a list of
`Encoded`, which the encoder puts in as they are.
"""

import json
from collections.abc import Iterable
from typing import Any

import pydantic_core


class Encoded(bytes):
    """A value as JSON. Inside of another value that is encoded, it stands as it is."""

    __slots__ = ()


def encoded(value: Any) -> Encoded:
    """Encode a value as compact JSON in UTF-8. Numbers keep all their digits.

    Raise ValueError for a number that JSON does not have.
    """
    if isinstance(value, Encoded):
        return value
    if isinstance(value, dict) and _has_encoded(value.values()):
        members = [b"%b:%b" % (encoded(name), encoded(one)) for name, one in value.items()]
        return Encoded(b"{%b}" % b",".join(members))
    if isinstance(value, list) and _has_encoded((value,)):
        return Encoded(b"[%b]" % b",".join(map(encoded, value)))
    made = pydantic_core.to_json(value)  # in a third of the time that the standard library takes
    if b"NaN" in made or b"Infinity" in made:  # a word, or such a number
        json.dumps(value, allow_nan=False)
    return Encoded(made)


def encoded_lines(values: Iterable[Any]) -> bytes:
    """Encode each value as a line."""
    return b"".join(b"%b\n" % encoded(one) for one in values)


def _has_encoded(values: Iterable[Any]) -> bool:
    """Look for a value that is encoded, or a list of such: all of them are or none."""
    for one in values:
        if type(one) is Encoded or (type(one) is list and one and type(one[0]) is Encoded):
            return True
    return False
