"""Settings come from the environment once, are checked at once, and name what is wrong."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from lpcfg.errors import SettingsError
from lpcfg.settings import PREFIX, Settings, read_settings

TABLE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def test_the_environment_sets_every_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPCFG_PORT", "9000")
    monkeypatch.setenv("LPCFG_API_KEYS_FILE", "keys.txt")
    settings = read_settings()
    assert settings.port == 9000
    assert settings.api_keys_file == Path("keys.txt")
    assert settings.host == "127.0.0.1"


def test_arguments_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPCFG_PORT", "9000")
    monkeypatch.setenv("LPCFG_HOST", "::1")
    settings = read_settings(port=9001, host=None)
    assert (settings.port, settings.host) == (9001, "::1")


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        read_settings().port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PORT", "99999", "expected LPCFG_PORT to be less than or equal to 65535, got '99999'"),
        ("PORT", "http", "expected LPCFG_PORT to be a valid integer, got 'http'"),
        ("MODEL", "", "expected LPCFG_MODEL to have at least 1 character, got ''"),
        ("TIMEOUT_SECONDS", "inf", "expected LPCFG_TIMEOUT_SECONDS to be a finite number"),
        ("THREADS", "0", "expected LPCFG_THREADS to be greater than or equal to 1, got '0'"),
    ],
)
def test_a_wrong_value_names_variable_expectation_and_cure(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(PREFIX + variable, value)
    with pytest.raises(SettingsError, match=re.escape(message) + ".*: correct or unset it"):
        read_settings()


def test_all_wrong_values_are_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPCFG_PORT", "x")
    monkeypatch.setenv("LPCFG_QUEUE", "-1")
    with pytest.raises(SettingsError, match=r"LPCFG_PORT.*; expected LPCFG_QUEUE"):
        read_settings()


def test_every_setting_is_documented_with_its_default() -> None:
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split(" | ")]
        for line in TABLE.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{PREFIX}")
    ]
    documented = {name: (default, meaning.rstrip(" |")) for name, default, meaning in rows}
    assert list(documented) == [PREFIX + name.upper() for name in Settings.model_fields]
    for name, field in Settings.model_fields.items():
        default, meaning = documented[PREFIX + name.upper()]
        assert meaning == field.description
        if field.default_factory is None:
            assert default == ("none" if field.default is None else str(field.default))
