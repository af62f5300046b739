"""API keys, their quotas, and their file."""

import hashlib
import re
from contextlib import suppress
from pathlib import Path

import pytest

from lpcfg.base.errors import SettingsError
from lpcfg.serve.http.keys import Key, Keys
from lpcfg.serve.http.problems import Refused
from tests.serve.conftest import Serve


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def test_keys_are_asked_for_and_have_quotas(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# keys\n\nann {sha256('A')}\nbob {sha256('B')} 9 # a few\n")
    with serve(api_keys_file=path) as client:

        def ask(sentences: int, **headers: str) -> tuple[int, dict[str, object]]:
            body = {"sentences": ["It is."] * sentences}
            answer = client.post("/v1/parse", json=body, headers=headers)
            return answer.status_code, {**answer.json(), **answer.headers}

        assert ask(1)[0] == 401
        status, told = ask(1, authorization="Bearer C")
        assert (status, told["www-authenticate"]) == (401, "Bearer")
        assert "got another: ask the administrator of this service" in str(told["detail"])
        assert ask(200, authorization="Bearer A")[0] == 200
        assert ask(2, authorization="bearer B")[0] == 200  # of 3 tokens each
        assert ask(1, **{"x-api-key": "B"})[0] == 200
        status, told = ask(2, authorization="Bearer B")
        assert (status, told["type"]) == (429, "/docs#problem-quota")
        assert 1 <= int(str(told["retry-after"])) <= 40
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers={"x-api-key": "A"}).status_code == 200
        assert client.get("/v2/health/ready").status_code == 200
        lines = client.post("/v1/batch", content='"a"\n', headers={"x-api-key": "B"})
        assert lines.json()["problem"]["status"] == 429


def test_a_quota_fills_up_as_time_passes() -> None:
    now = 100.0
    key = Key("ann", b"", 60, lambda: now)
    key.spend(60)
    with pytest.raises(
        Refused, match="at most 60 tokens a minute with the key of ann, got about 10"
    ):
        key.spend(10)
    now += 10.0
    key.spend(10)
    now += 3600.0
    key.spend(200)  # more than a minute's worth: let through once, paid back later
    with pytest.raises(Refused, match="with -140 left") as refused:
        key.spend(1)
    assert refused.value.retry_after == pytest.approx(141.0)


def test_a_quota_is_corrected_by_the_tokens_found(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"ann {sha256('A')} 1000\n")
    text = "It is. " * 20  # 60 tokens in 140 characters, which are charged as 35
    with serve(api_keys_file=path) as client:
        (key,) = client.app.state.service.keys  # type: ignore[attr-defined]
        key.clock = lambda: key.since
        for request in ({"text": text}, {"sentences": ["It is."] * 20}, {"text": " "}):
            before = key.left
            answer = client.post("/v1/parse", json=request, headers={"x-api-key": "A"}).json()
            found = sum(len(one["tokens"]) for one in answer["sentences"])
            assert before - key.left == found
        before = key.left
        client.post("/v1/batch", content='"It is."\n' * 20, headers={"x-api-key": "A"})
        trees = {"trees": ["(S (NP (PRP It)) (VP (VBZ is)))", "(S (NP"]}
        client.post("/v1/tree-probability", json=trees, headers={"x-api-key": "A"})
        assert before - key.left == 62


def test_a_changed_file_of_keys_is_read_again(tmp_path: Path) -> None:
    path, now = tmp_path / "keys", 100.0
    path.write_text(f"ann {sha256('A')} 60\nbob {sha256('B')}\n")
    keys = Keys(path, lambda: now)

    def owner(key: str) -> str | None:
        with suppress(Refused):
            return keys.owner({"x-api-key": key}).name
        return None

    keys.owner({"x-api-key": "A"}).spend(50)
    path.write_text(f"ann {sha256('A')} 60\ncarl {sha256('Carl')}\n")
    assert owner("B") == "bob"  # looked at a moment ago
    now += 2
    assert (owner("B"), owner("Carl")) == (None, "carl")
    assert keys.owner({"x-api-key": "A"}).left == pytest.approx(10, abs=1)
    path.write_text("nonsense\n")
    now += 2
    assert owner("Carl") == "carl"
    path.unlink()
    now += 2
    assert owner("Carl") == "carl"


def test_usage_is_counted_for_each_key(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"ann {sha256('A')}\n")
    with serve(api_keys_file=path) as client:
        request = {"sentences": ["It is.", "It is."]}
        assert client.post("/v1/parse", json=request, headers={"x-api-key": "A"}).status_code == 200
        text = client.get("/metrics").text
    assert 'lpcfg_key_sentences_total{key="ann"} 2.0' in text
    assert 'lpcfg_key_tokens_total{key="ann"} 6.0' in text


@pytest.mark.parametrize(
    "work", ["ann", "ann " + "A" * 64, "ann " + "a" * 63, "ann " + "a" * 64 + " 0", "a b c d"]
)
def test_errors_in_a_file_of_keys_do_not_repeat_the_keys(tmp_path: Path, work: str) -> None:
    path = tmp_path / "keys"
    path.write_text(f"\n{work}\n")
    expected = r"expected `NAME SHA256 \[TOKENS_PER_MINUTE\]` in .*keys:2, got something else"
    with pytest.raises(SettingsError, match=expected) as error:
        Keys(path)
    assert "aaaa" not in str(error.value)
    with pytest.raises(SettingsError, match=re.escape(f"got {tmp_path / 'none'}")):
        Keys(tmp_path / "none")
