"""Options as frozen dataclasses, each field with its help and its limits, said once.

Commands make flags of them, endpoints make members of a request, and runs keep them as JSON.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Self

from lpcfg.base.errors import InputError


def option(
    default: Any,
    help: str,
    *,
    kind: type = str,
    least: float | None = None,
    choices: tuple[str, ...] = (),
    bound: str | None = None,
) -> Any:
    """Make a field of a class of options.

    Args:
        default: the value where none is given; its type is that of the option
        help: a sentence for people, without a full stop
        kind: the type of an option whose default is None
        least: the smallest number allowed
        choices: the strings allowed
        bound: the name of the setting that bounds it in a service: its answers grow with it
    """
    return field(
        default=default,
        metadata={
            "help": help,
            "kind": kind if default is None else type(default),
            "least": least,
            "choices": choices,
            "bound": bound,
        },
    )


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one kind of model. A wrong value is refused when they are made."""

    def __post_init__(self) -> None:
        for one in fields(self):
            _check(one.name, getattr(self, one.name), one.default, one.metadata)

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """Make options of names and values. Raise InputError for a name that is none of them."""
        known = [one.name for one in fields(cls)]
        for name in given:
            if name not in known:
                close = get_close_matches(name, known, 1)
                meant = f"did you mean `{close[0]}`?" if close else "leave it out"
                raise InputError(
                    f"expected options among {', '.join(known) or 'none'}, got {name!r}: {meant}",
                    pointer=f"/{name}",
                )
        return cls(**given)

    def as_json(self) -> dict[str, Any]:
        """Return names and values, from which `of` makes the same options."""
        return asdict(self)


_EXPECTED = {bool: "True or False", int: "a whole number", float: "a number", str: "a string"}


def _check(name: str, value: object, default: object, limits: Mapping[str, Any]) -> None:
    """Raise InputError for a value of another type than the default's, or outside of the limits."""
    choices, least, kind = limits["choices"], limits["least"], limits["kind"]
    if value is None and default is None:
        return
    right = type(value) is kind or (kind is float and type(value) is int)
    if choices:
        expected, right = f"one of {', '.join(choices)}", right and value in choices
    elif least is not None:
        expected = f"{'a whole number' if kind is int else 'a number'} of at least {least:g}"
        right = right and float(value) >= least  # type: ignore[arg-type]
    else:
        expected = _EXPECTED[kind]
    if not right:
        raise InputError(
            f"expected `{name}` as {expected}, got {value!r}: give such a value", pointer=f"/{name}"
        )
