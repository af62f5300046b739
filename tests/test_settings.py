"""Settings come from the environment once, are checked at once, and name what is wrong."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from lpcfg.api.stores import chosen_store
from lpcfg.base import cores
from lpcfg.base.errors import SettingsError
from lpcfg.settings import PREFIX, Settings, misspelt_settings, read_settings

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


def test_the_store_is_that_of_all_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_store() == read_settings().model_store
    assert chosen_store("mine") == "mine"
    monkeypatch.setenv("LPCFG_MODEL_STORE", "theirs")
    assert (chosen_store(), chosen_store("mine")) == ("theirs", "mine")
    with pytest.raises(SettingsError, match="expected LPCFG_MODEL_STORE to have at least 1 char"):
        chosen_store("")


def test_a_command_refuses_settings_that_it_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("lpcfg_port", "http")
    with pytest.raises(SettingsError, match="expected LPCFG_PORT to be a valid integer"):
        chosen_store("mine")


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


def test_variables_that_are_no_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LPCFG_QUEU", "LPCFG_XYZ", "LPCFG_SERVICE_HOST", "LPCFG_PORT_8000_TCP_ADDR"):
        monkeypatch.setenv(name, "1")
    told = [one for one in misspelt_settings() if "LPCFG_DATA" not in one]
    assert told == [
        "expected settings alone to begin with LPCFG_, got LPCFG_QUEU: is LPCFG_QUEUE meant?",
        "expected settings alone to begin with LPCFG_, got LPCFG_XYZ: see docs/settings.md",
    ]


@pytest.mark.parametrize(
    ("files", "own", "expected"),
    [
        ({"cpu.max": "150000 100000"}, "0::/", 2),
        ({"cpu.max": "50000 100000"}, "0::/", 1),
        ({"cpu.max": "max 100000"}, "0::/", 64),
        ({"pod/cpu.max": "300000 100000", "pod/own/cpu.max": "max 100000"}, "0::/pod/own", 3),
        ({"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, "1:cpu:/", 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "1:cpu:/", 64),
        ({}, "0::/", 64),
        ({"cpu.max": "nonsense"}, "0::/", 64),
    ],
)
def test_a_container_s_quota_of_time_bounds_the_cores(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    own: str,
    expected: int,
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    (tmp_path / "self").write_text(own + "\n", encoding="utf-8")
    monkeypatch.setattr(cores, "_GROUPS", tmp_path)
    monkeypatch.setattr(cores, "_OWN_GROUP", tmp_path / "self")
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr(cores.os, "process_cpu_count", lambda: 64, raising=False)
    assert cores.cores() == expected
    assert read_settings().threads == expected
