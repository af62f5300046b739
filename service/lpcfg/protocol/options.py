"""Options of a kind of models as members of a request, with their help and their limits."""

from collections.abc import Callable
from dataclasses import Field as DataclassField
from dataclasses import fields
from typing import Any, Literal, Optional

from pydantic import Field, FiniteFloat

from lpcfg.base.options import Options


def members_of(options: type[Options], most: Callable[[str], int]) -> dict[str, Any]:
    """Make members of options, as pydantic's `create_model` takes them.

    `most` tells the value of the setting that bounds an option. It is described, not checked: an
    option beyond it is a limit that is exceeded, which is another problem than wrong content.
    """
    return {one.name: _member(one, most) for one in fields(options)}


def _member(one: "DataclassField[Any]", most: Callable[[str], int]) -> tuple[Any, Any]:
    told = one.metadata
    kind: Any = FiniteFloat if told["kind"] is float else told["kind"]
    if told["choices"]:
        kind = Literal[told["choices"]]
    if one.default is None:
        kind = Optional[kind]  # noqa: UP045 (of a value)
    limits: dict[str, Any] = {"default": one.default, "ge": told["least"]}
    if told["bound"] is not None:
        limits["json_schema_extra"] = {"maximum": most(told["bound"])}
    return kind, Field(description=told["help"], **limits)
