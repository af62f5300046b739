"""The training configuration: one frozen object, from a TOML file and then from options.

    rare_threshold = 3

    [[members]]                 # one, or several that vote
    estimator = "spectral"
    states = 16

docs/training.md lists every key. A key outside `members` is one of `TrainingConfig`; a key of a
member other than `estimator` and `seed` is one of its estimator's settings.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lpcfg.base.errors import TrainingError
from lpcfg.text.languages import LANGUAGES
from lpcfg.training.estimators.inputs import check_least
from lpcfg.training.estimators.registry import did_you_mean, estimator
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.trees.brackets import MAX_DEPTH
from lpcfg.trees.style import Style

DEFAULT_ESTIMATOR = "spectral"
_NESTED = {"members", "rescoring"}


@dataclass(frozen=True)
class Member:
    """One estimator of an ensemble, with its own settings.

    A `seed` of None means the configuration's seed plus the member's place, counted from 0.
    """

    estimator: str
    settings: Any
    seed: int | None = None

    def __post_init__(self) -> None:
        check_least(self, seed=0)

    def as_json(self) -> dict[str, object]:
        return {"estimator": self.estimator, "seed": self.seed, **asdict(self.settings)}


def member(name: str = DEFAULT_ESTIMATOR, **settings: object) -> Member:
    """Create a member with some settings and the defaults of its estimator."""
    return _member({"estimator": name, **settings}, "this member")


def default_members() -> tuple[Member, ...]:
    """Return one spectral member: under the rescoring layer, four are no better and a third as
    fast.
    """
    return (member("spectral", states=16),)


@dataclass(frozen=True)
class TrainingConfig:
    """The training configuration. The defaults are those of `lpcfg train`.

    horizontal           1 marks intermediate symbols with their last child (`@VP<PP`), 0 does not
    sibling_threshold    marks seen less often than this are dropped
    rare_threshold       words seen less often than this share the terminal of their signature;
                         0 makes every word a terminal, and unknown words impossible
    language             the treebank's: english, spanish, german, french or neutral
    tagger               use a word's neighbours to choose its tag, unless the caller gives one;
                         has no effect with a rare_threshold of 0
    word_classes         a file that `lpcfg words classes` wrote: the tag model then
                         knows words that the treebanks do not have
    held_out             trees to hold out for calibration, but at most one in ten; 0 leaves
                         probabilities uncalibrated (under a layer: the last jackknife fold)
    style                rules that bring the trees into one style, by name (see trees/style.py);
                         none leaves them as they were published
    emphasis             source weights: how often the trees of each treebank count, in the order
                         of the treebanks; once each by default
    max_depth            the deepest nesting of brackets in a tree
    skip_bad             leave malformed trees out instead of refusing the treebank
    seed                 the seed of all random numbers
    exact                stores the members' numbers in full precision instead of float16
    licence              the treebank's licence, for the manifest and the card
    notes                further text for the card, in Markdown
    rescoring            how the rescoring layer is learned (`[rescoring]`, see its settings), or
                         false for a model without it
    members              the estimators, all over the same grammar and lexicon
    """

    horizontal: Literal[0, 1] = 1
    sibling_threshold: int = 20
    rare_threshold: int = 3
    language: str = "english"
    tagger: bool = True
    word_classes: str | None = None
    held_out: int = 600
    style: tuple[str, ...] = ()
    emphasis: tuple[int, ...] = ()
    max_depth: int = MAX_DEPTH
    skip_bad: bool = False
    seed: int = 1
    exact: bool = False
    licence: str = "not stated"
    notes: str = ""
    rescoring: RescoringSettings | None = field(default_factory=RescoringSettings)
    members: tuple[Member, ...] = field(default_factory=default_members)

    def __post_init__(self) -> None:
        check_least(self, sibling_threshold=0, rare_threshold=0, held_out=0, max_depth=1, seed=0)
        object.__setattr__(self, "style", Style.of(self.style).rules)
        if min(self.emphasis, default=1) < 1:
            raise TrainingError(
                f"expected numbers of at least 1 in `emphasis`, got {list(self.emphasis)}: raise "
                "the others"
            )
        if self.language not in LANGUAGES:
            raise TrainingError(
                f"expected `language` among {', '.join(LANGUAGES)}, got {self.language!r}: "
                "use `neutral` for a language without rules of its own"
            )
        if not self.members:
            raise TrainingError(
                "expected at least one member, got none: add `[[members]]` with an `estimator`"
            )

    @property
    def chooses_steps(self) -> bool:
        """True if some member stops where it is best on held-out trees."""
        return any(getattr(member.settings, "patience", 0) > 0 for member in self.members)

    def seeds(self) -> list[int]:
        """Return the seed of every member."""
        given = enumerate(self.members)
        return [self.seed + k if m.seed is None else m.seed for k, m in given]

    def as_json(self) -> dict[str, object]:
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NESTED}
        rescoring = asdict(self.rescoring) if self.rescoring else False
        members = [member.as_json() for member in self.members]
        return {**own, "rescoring": rescoring, "members": members}


def read_config(path: str | Path) -> TrainingConfig:
    """Read the configuration in a TOML file.

    Raises:
        TrainingError: if it cannot be read, or has unknown keys or wrong values.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TrainingError(f"{path}: expected TOML: {error}: correct the file") from error
    except OSError as error:
        raise TrainingError(
            f"expected a readable TOML file, got {error.strerror!r} at {path}: check the path and "
            "its permissions"
        ) from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise TrainingError(
            f"{path}: expected UTF-8, got the byte 0x{byte:02x}: convert the file to UTF-8"
        ) from error
    try:
        return config_of(content)
    except TrainingError as error:
        raise TrainingError(f"{path}: {error}") from error


def config_of(content: Mapping[str, object]) -> TrainingConfig:
    """Build a configuration from these keys, with defaults for all others."""
    given = dict(content)
    members, rescoring = given.pop("members", None), given.pop("rescoring", None)
    values = _checked(TrainingConfig, given, "the configuration")
    if members is not None:
        values["members"] = _members(members)
    if rescoring is not None:
        values["rescoring"] = _rescoring(rescoring)
    return TrainingConfig(**values)


def overridden(config: TrainingConfig, options: Mapping[str, object]) -> TrainingConfig:
    """Change a configuration by options.

    Args:
        config: the configuration.
        options: `estimator` replaces all members by one. Any other option is a key of the
            configuration, or a setting of its members: of every one that has it, and at least one
            must. If no members were chosen, it applies to one spectral estimator instead of the
            default members. None changes nothing.

    Raises:
        TrainingError: if there is no such key or setting, or a value is wrong.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if "estimator" in given:
        name = str(given.pop("estimator"))
        config = replace(config, members=(member(name),))
    if "rescoring" in given:
        rescoring = _rescoring(given.pop("rescoring"))
        if rescoring is None or config.rescoring is None:
            config = replace(config, rescoring=rescoring)
    own = {f.name for f in fields(TrainingConfig)} - _NESTED
    for_all = {name: value for name, value in given.items() if name not in own}
    if for_all and config.members == default_members():
        config = replace(config, members=(member(),))
    members = tuple(_with(each, for_all) for each in config.members)
    for name in for_all:
        if not any(name in _settings(each) for each in config.members):
            used = ", ".join(dict.fromkeys(each.estimator for each in config.members))
            raise TrainingError(
                f"expected a setting of {used}, got `{name}`: omit it or choose an estimator "
                "that has it"
            )
    values = {name: value for name, value in given.items() if name in own}
    checked = _checked(TrainingConfig, values, "the options")
    return replace(config, members=members, **checked)


def _settings(member: Member) -> set[str]:
    return {f.name for f in fields(member.settings)}


def _with(member: Member, options: Mapping[str, object]) -> Member:
    given = {name: value for name, value in options.items() if name in _settings(member)}
    checked = _checked(type(member.settings), given, f"the settings of {member.estimator}")
    return replace(member, settings=replace(member.settings, **checked))


def _rescoring(content: object) -> RescoringSettings | None:
    if isinstance(content, bool):
        return RescoringSettings() if content else None
    if not isinstance(content, Mapping):
        raise TrainingError(
            f"expected a table, true or false in `rescoring`, got {content!r}: write `[rescoring]`"
        )
    return RescoringSettings(**_checked(RescoringSettings, content, "[rescoring]"))


def _members(content: object) -> tuple[Member, ...]:
    if not isinstance(content, Sequence) or not all(isinstance(item, Mapping) for item in content):
        raise TrainingError(
            f"expected a list of tables in `members`, got {content!r}: write `[[members]]`"
        )
    return tuple(_member(item, f"member {k}") for k, item in enumerate(content, start=1))


def _member(content: Mapping[str, object], where: str) -> Member:
    given = dict(content)
    name = given.pop("estimator", DEFAULT_ESTIMATOR)
    settings = estimator(str(name)).settings
    seed = {"seed": given.pop("seed")} if "seed" in given else {}
    checked_seed = _checked(TrainingConfig, seed, where)
    values = _checked(settings, given, f"{where} ({name})")
    return Member(str(name), settings(**values), **checked_seed)


def _checked(kind: type[Any], given: Mapping[str, object], where: str) -> dict[str, Any]:
    """Check the keys and values given for a dataclass against the types of its fields."""
    hints = get_type_hints(kind)
    result = {}
    for name, value in given.items():
        if name not in hints:
            raise TrainingError(
                f"expected a key that {where} can have ({', '.join(hints) or 'none'}), "
                f"got `{name}`{did_you_mean(name, hints)}"
            )
        result[name] = _as(hints[name], value, f"`{name}` of {where}")
    return result


def _as(hint: Any, value: object, where: str) -> object:
    """Convert the value to the type of its field."""
    if get_origin(hint) is Literal:
        accepted = value in get_args(hint) and type(value) in map(type, get_args(hint))
        wanted = f"one of {', '.join(map(repr, get_args(hint)))}"
    elif get_origin(hint) in (Union, UnionType):
        return None if value is None else _as(_some(hint), value, where)
    elif get_origin(hint) is tuple:
        if isinstance(value, Sequence) and not isinstance(value, str):
            return tuple(_as(get_args(hint)[0], item, f"an item in {where}") for item in value)
        accepted, wanted = False, "a list"
    elif hint is float:
        accepted, wanted = type(value) in (int, float), "a number"
        value = float(value) if accepted else value  # type: ignore[arg-type]
    else:
        accepted, wanted = type(value) is hint, _KINDS[hint]
    if not accepted:
        raise TrainingError(f"expected {wanted} for {where}, got {value!r}: write {wanted}")
    return value


_KINDS = {int: "a whole number", str: "text", bool: "true or false"}


def _some(hint: Any) -> Any:
    """Return the type of a value that may be None, without None."""
    return next(kind for kind in get_args(hint) if kind is not NoneType)
