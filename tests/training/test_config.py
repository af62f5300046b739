"""Training configurations: from TOML and options, refused with a cure."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import pytest

from lpcfg.base.errors import TrainingError
from lpcfg.training.config import (
    Member,
    TrainingConfig,
    config_of,
    default_members,
    member,
    overridden,
    read_config,
)
from lpcfg.training.estimators import registry as estimators
from lpcfg.training.estimators.registry import ESTIMATORS, Estimator
from lpcfg.training.rescoring.settings import RescoringSettings

DOCS = Path(__file__).resolve().parents[2] / "docs" / "training.md"


@dataclass(frozen=True)
class Settings:
    states: int = 8
    noise: float = 0.0
    smoothing: Literal["none", "paper"] = "paper"
    without: tuple[str, ...] = ()
    limit: int | None = None
    exact: bool = False


@pytest.fixture(autouse=True)
def _made_up_estimator(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = Estimator(Settings, ESTIMATORS["counts"].estimate)
    monkeypatch.setattr(estimators, "ESTIMATORS", {**ESTIMATORS, "made-up": made_up})


def written(folder: Path, text: str) -> Path:
    path = folder / "training.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_empty_file_is_the_default_configuration(tmp_path: Path) -> None:
    assert read_config(written(tmp_path, "")) == TrainingConfig()
    assert TrainingConfig().members == default_members()


def test_a_setting_alone_is_for_one_spectral_estimator() -> None:
    assert overridden(TrainingConfig(), {"rare_threshold": 0}).members == default_members()
    (only,) = overridden(TrainingConfig(), {"states": 4, "smoothing": False}).members
    assert only == member("spectral", states=4, smoothing=False)
    both = TrainingConfig(members=(member("spectral"), member("clustering")))
    assert [one.settings.states for one in overridden(both, {"states": 4}).members] == [4, 4]


def test_a_file_sets_every_kind_of_value(tmp_path: Path) -> None:
    text = """
    horizontal = 0
    language = "neutral"
    seed = 7

    [[members]]
    estimator = "made-up"
    states = 16
    noise = 1
    smoothing = "none"
    without = ["a", "b"]
    limit = 3
    exact = true

    [[members]]
    estimator = "counts"
    seed = 30

    [[members]]
    estimator = "made-up"
    """
    config = read_config(written(tmp_path, text))
    assert (config.horizontal, config.language, config.rare_threshold) == (0, "neutral", 3)
    settings = Settings(16, 1.0, "none", ("a", "b"), 3, True)
    assert config.members[0] == Member("made-up", settings)
    assert type(config.members[0].settings.noise) is float
    assert config.members[2] == member("made-up")
    assert config.seeds() == [7, 30, 9]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "seed = x",
            r"training\.toml: expected TOML: .*\(at line 1, column 8\).*: correct the file",
        ),
        ("rare_treshold = 2", "got `rare_treshold`: did you mean `rare_threshold`"),
        ("zzz = 2", "that the configuration can have .*got `zzz`: use one of them"),
        ("seed = '2'", "expected a whole number for `seed` of the configuration, got '2'"),
        ("seed = true", "expected a whole number for `seed` of the configuration, got True"),
        ("emphasis = [2, 0]", r"at least 1 in `emphasis`, got \[2, 0\]: raise the others"),
        ("seed = -1", "expected `seed` of at least 0, got -1: raise it"),
        ("max_depth = 0", "expected `max_depth` of at least 1, got 0"),
        ("horizontal = 2", "expected one of 0, 1 for `horizontal` of the configuration, got 2"),
        ("horizontal = false", "expected one of 0, 1 for `horizontal`.*, got False"),
        (
            "language = 'latin'",
            "expected `language` among english, spanish, german, french, neutral, got 'latin': use",
        ),
        ("members = 3", r"expected a list of tables in `members`, got 3: write `\[\[members\]\]`"),
        ("members = []", "expected at least one member, got none: add"),
        ("[[members]]\nestimator = 'count'", "got 'count': did you mean `counts`"),
        ("[[members]]\nestimator = 'zzz'", "expected an estimator among counts, .*got 'zzz': use"),
        ("[[members]]\nestimator = 'counts'\nx = 1", r"member 1 \(counts\).*\(none\).*: remove it"),
        (
            "[[members]]\nestimator = 'made-up'\n[[members]]\nestimator = 'made-up'\nstaets = 1",
            r"member 2 \(made-up\).*got `staets`: did you mean `states`",
        ),
        ("[[members]]\nestimator = 'made-up'\nnoise = '1'", "expected a number for `noise`"),
        ("[[members]]\nestimator = 'made-up'\nsmoothing = 'no'", "one of 'none', 'paper' for"),
        ("[[members]]\nestimator = 'made-up'\nwithout = 'a'", "expected a list for `without`"),
        ("[[members]]\nestimator = 'made-up'\nwithout = [1]", "text for an item in `without`"),
        ("[[members]]\nestimator = 'made-up'\nlimit = 1.5", "whole number for `limit`.*got 1.5"),
        ("[[members]]\nestimator = 'made-up'\nexact = 1", "true or false for `exact`.*got 1"),
        ("[[members]]\nestimator = 'counts'\nseed = -2", "`seed` of at least 0, got -2"),
    ],
)
def test_invalid_configuration_files_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(TrainingError, match=problem) as caught:
        read_config(written(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "training.toml"))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    absent = r"got 'No such file or directory' at .*nowhere\.toml: check the path"
    with pytest.raises(TrainingError, match=f"expected a readable TOML file, {absent}"):
        read_config(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(
        TrainingError, match=r"latin\.toml: expected UTF-8, got the byte 0xe9: conv"
    ):
        read_config(tmp_path / "latin.toml")


def test_options_override_the_configuration_and_every_member_that_has_them() -> None:
    config = TrainingConfig(members=(member("made-up", noise=0.5), member("counts")))
    options = {"seed": 5, "rare_threshold": 0, "states": 4, "language": None, "estimator": None}
    assert overridden(config, options) == TrainingConfig(
        seed=5,
        rare_threshold=0,
        members=(member("made-up", noise=0.5, states=4), member("counts")),
    )


def test_the_option_estimator_replaces_all_members() -> None:
    config = TrainingConfig(members=(member("counts"), member("counts")))
    assert overridden(config, {"estimator": "made-up", "states": 2}).members == (
        member("made-up", states=2),
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"states": 4}, "expected a setting of counts, got `states`: omit it or choose an"),
        ({"estimator": "sectral"}, "expected an estimator among counts.*, got 'sectral'"),
        ({"estimator": "made-up", "states": "4"}, "a whole number for `states` of the settings of"),
        ({"seed": -1}, "expected `seed` of at least 0, got -1"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(TrainingError, match=problem):
        overridden(TrainingConfig(members=(member("counts"),)), options)


def test_a_configuration_survives_json() -> None:
    config = TrainingConfig(
        seed=4,
        horizontal=0,
        members=(member("made-up", without=["x"]), Member("counts", _none(), 9)),
    )
    told = config.as_json()
    told["members"] = [
        {key: value for key, value in one.items() if value is not None} for one in told["members"]
    ]
    assert config_of(told) == config


def _none() -> object:
    return ESTIMATORS["counts"].settings()


def documented(section: str) -> dict[str, str]:
    """Map keys to defaults, from the table under a heading of docs/training.md."""
    _, _, rest = DOCS.read_text(encoding="utf-8").partition(f"\n## {section}\n")
    table = rest.partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \| [^|]{10,} \|$", table, re.MULTILINE))


def defaults(kind: type) -> dict[str, str]:
    return {
        f.name: _told(getattr(kind(), f.name))
        for f in fields(kind)
        if f.name not in ("members", "rescoring")
    }


def _told(value: object) -> str:
    if isinstance(value, tuple):
        return "all" if value else "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


def test_every_key_is_documented_with_its_default() -> None:
    assert documented("Keys") == defaults(TrainingConfig)
    assert documented("Keys of `[rescoring]`") == defaults(RescoringSettings)
    for name, one in ESTIMATORS.items():
        assert documented(f"Estimator `{name}`") == defaults(one.settings), name
