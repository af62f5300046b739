"""Settings of the process: one frozen object, read from the environment once."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    SettingsConfigDict,
)

from lpcfg.base.cores import cores
from lpcfg.base.errors import SettingsError
from lpcfg.store.places import default_store

PREFIX = "LPCFG_"


class Settings(BaseSettings):
    """All settings. `LPCFG_<NAME>` in the environment sets the field `<name>`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    model: str = Field("en", min_length=1, description="model served unless another is named")
    models: Annotated[tuple[str, ...] | None, NoDecode] = Field(
        None, description="other models served, with commas between them"
    )
    dependencies: str | None = Field(
        None,
        min_length=1,
        description="dependency model served; by default `en-dep`, of the store or of the package",
    )
    tagger: str | None = Field(
        None,
        min_length=1,
        description="tagging model that /v1/tag answers with; without it there is none",
    )
    model_store: str = Field(
        default_factory=default_store,
        min_length=1,
        description="folder or fsspec URL of the model store; models missing there are looked up "
        "in the package",
    )
    host: str = Field("127.0.0.1", min_length=1, description="address the service listens on")
    port: int = Field(8000, ge=0, le=65535, description="TCP port the service listens on; 0: any")
    max_tokens: int = Field(200, ge=1, description="longest sentence accepted, in tokens")
    max_sentences: int = Field(256, ge=1, description="most sentences or trees in one request")
    max_parses: int = Field(50, ge=1, description="most trees (`k`) asked for a sentence")
    max_body_bytes: int = Field(
        1 << 20, ge=1, description="largest request body, and longest line of a batch, in bytes"
    )
    max_json_depth: int = Field(32, ge=4, description="deepest nesting of JSON accepted")
    max_tree_depth: int = Field(500, ge=1, description="deepest bracketed tree accepted")
    max_tree_width: int = Field(1000, ge=1, description="most children of one node of a tree")
    max_header_bytes: int = Field(
        1 << 16, ge=256, description="largest head of a request: its line and all headers"
    )
    timeout_seconds: float = Field(
        30.0, gt=0, allow_inf_nan=False, description="time one request may take before it stops"
    )
    header_seconds: float = Field(
        10.0,
        gt=0,
        allow_inf_nan=False,
        description="time a client has for the head of a request",
    )
    body_seconds: float = Field(
        10.0,
        gt=0,
        allow_inf_nan=False,
        description="time a client has for a body; each 1024 bytes that come add a second",
    )
    send_seconds: float = Field(
        30.0, gt=0, allow_inf_nan=False, description="time a client may read nothing of its answer"
    )
    keep_alive_seconds: float = Field(
        15.0, gt=0, allow_inf_nan=False, description="time an idle connection is kept open"
    )
    drain_seconds: float = Field(
        0.5,
        ge=0,
        allow_inf_nan=False,
        description="time between SIGTERM and the end of listening, for balancers to notice",
    )
    threads: int = Field(
        default_factory=cores,
        ge=1,
        description="threads that parse; by default one per core",
    )
    queue: int = Field(
        64, ge=0, description="requests that may wait for a thread before more are turned away"
    )
    queue_seconds: float = Field(
        2.0,
        gt=0,
        allow_inf_nan=False,
        description="work that may wait, in estimated seconds, before more is turned away",
    )
    batches: int = Field(8, ge=1, description="batches at once, of which one client may have half")
    jobs_dir: Path | None = Field(
        None,
        description="folder that jobs are kept in, which replicas may share; without it there are "
        "no jobs",
    )
    jobs: int = Field(64, ge=1, description="jobs kept at once, of which one client may have half")
    job_bytes: int = Field(
        64 << 20,
        ge=1,
        description="largest body of a job, in bytes; its answers take some 50 times as many",
    )
    job_hours: float = Field(
        24.0,
        gt=0,
        allow_inf_nan=False,
        description="time a job is kept after its arrival, in hours",
    )
    max_answer_bytes: int = Field(
        16 << 20, ge=1, description="largest answer to one request, in bytes"
    )
    cache_bytes: int = Field(
        16 << 20, ge=0, description="memory for answers given before; 0 keeps none"
    )
    proxies: Annotated[tuple[str, ...] | None, NoDecode] = Field(
        None,
        description="addresses or networks of proxies whose X-Forwarded-For is believed, with "
        "commas between them; without it a client is who connects",
    )
    cors_origins: Annotated[tuple[str, ...] | None, NoDecode] = Field(
        None,
        description="origins of other sites' pages that may ask, with commas between them, or *; "
        "without it only the service's own page may",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="lowest level that is logged; requests have the level info"
    )
    traces: Literal["none", "otlp"] = Field(
        "none",
        description="otlp sends traces to OpenTelemetry, as its own variables OTEL_* say; needs "
        "lpcfg[otel]",
    )
    similarity_file: Path | None = Field(
        None, description="measure that /v1/similarity answers with; without it there is none"
    )
    api_keys_file: Path | None = Field(
        None, description="file of hashed API keys; without it no key is asked for"
    )
    admin_keys_file: Path | None = Field(
        None, description="file of hashed keys that may reload models; without it, no key may"
    )

    @field_validator("models", "proxies", "cors_origins", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def read_settings(**given: Any) -> Settings:
    """Read the settings: from the arguments that are not None, else from the environment."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = (_explain(problem) for problem in error.errors(include_url=False))
        raise SettingsError("; ".join(problems)) from error


def misspelt_settings() -> Iterator[str]:
    """Yield an explanation of every variable that looks like a setting and is none.

    Kubernetes sets variables for a Service of the name lpcfg; these are passed over.
    """
    for name in sorted(EnvSettingsSource(Settings).env_vars):
        field = name.upper().removeprefix(PREFIX).lower()
        if not name.upper().startswith(PREFIX) or field in Settings.model_fields:
            continue
        if not _OF_KUBERNETES.search(field):
            close = get_close_matches(field, Settings.model_fields, n=1)
            cure = f"is {PREFIX}{close[0].upper()} meant?" if close else "see docs/settings.md"
            yield f"expected settings alone to begin with {PREFIX}, got {name.upper()}: {cure}"


_OF_KUBERNETES = re.compile(r"^(service_|port_\d)|_service_(host|port)|_port_\d+_|_port$")


def _explain(problem: ErrorDetails) -> str:
    name = str(problem["loc"][0])
    _, _, expected = problem["msg"].partition(" should ")
    expected, _, _ = expected.partition(", unable to parse")
    meaning = Settings.model_fields[name].description
    return (
        f"expected {PREFIX}{name.upper()} to {expected}, got {problem['input']!r}: "
        f"correct or unset it ({meaning})"
    )
