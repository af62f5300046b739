"""The options of parsing: declared here alone, and taken whole by all that parse."""

from dataclasses import dataclass
from typing import TypedDict

from lpcfg.base.options import Options, option
from lpcfg.engine.objectives import OBJECTIVES


@dataclass(frozen=True, slots=True)
class ParseOptions(Options):
    """Options of parsing. Python, commands, HTTP, collections and jobs have the same ones.

    >>> lpcfg.ParseOptions(k=2).objective is None
    True
    """

    k: int = option(
        1, "how many of the best trees, the best one first", least=1, bound="max_parses"
    )
    objective: str | None = option(
        None,
        "what the best tree maximises; by default max-spans where a rescoring layer decides, "
        "else max-rule",
        choices=OBJECTIVES,
    )
    rescore: bool = option(True, "let the rescoring layer decide, or the tensors alone")
    fragments: bool = option(
        True, "where no analysis spans a sentence, join the likeliest parts of it, or let it fail"
    )


class Asked(TypedDict, total=False):
    """The same as keyword arguments, for type checkers."""

    k: int
    objective: str | None
    rescore: bool
    fragments: bool
