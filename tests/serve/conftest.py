"""A small model of our own trees, the service in this process, and in a process of its own."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from benchmarks.load import distinct_sentences
from benchmarks.serving import Process
from fastapi.testclient import TestClient

from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.tags import train as tag_training
from lpcfg.kinds.tags.train import Config, estimator_of
from lpcfg.serve.app import create_app
from lpcfg.settings import Settings
from lpcfg.training.config import TrainingConfig
from lpcfg.training.pipeline import train_and_publish
from lpcfg.words.similarity import train_similarity
from tests.words.test_similarity import scored, vectors

TREES = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
Serve = Callable[..., AbstractContextManager[TestClient]]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with `small`, a spectral model of the trees in examples/."""
    folder = tmp_path_factory.mktemp("store")
    train_and_publish(TREES, TrainingConfig(), store=folder, name="small")
    return folder


@pytest.fixture(scope="session")
def parser(store: Path) -> Parser:
    """Return the parser whose answers the service must give."""
    return Parser.load("small", store)


def wait_until_ready(client: TestClient) -> None:
    end = time.monotonic() + 60
    while client.get("/v2/health/ready").status_code != 200:
        assert time.monotonic() < end, "the service was never ready"
        time.sleep(0.01)


@pytest.fixture(scope="session")
def serve(store: Path) -> Serve:
    """Serve in this process, with the given settings."""

    @contextmanager
    def serving(**given: object) -> Iterator[TestClient]:
        settings = Settings(**{"model": "small", "model_store": str(store), **given})
        with TestClient(create_app(settings), raise_server_exceptions=False) as client:
            wait_until_ready(client)
            yield client

    return serving


@pytest.fixture(scope="session")
def client(serve: Serve) -> Iterator[TestClient]:
    """Serve in this process, with the default settings."""
    with serve() as running:
        yield running


@pytest.fixture(scope="session")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a measure of sentences' similarity that knows a few synonyms."""
    path = tmp_path_factory.mktemp("measure") / "measure.safetensors"
    train_similarity(*scored(0), vectors()).save(path)
    return path


@pytest.fixture(scope="session")
def tagger(store: Path) -> str:
    """Return the name of a tagging model in the store beside `small`."""
    config = Config(estimator_of("spectral", states=4))
    tag_training.train_and_publish(TREES, config, store=store, name="tags", dev={})
    return "tags"


@pytest.fixture(scope="session")
def process(
    store: Path, measure: Path, tagger: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    """Serve in a process of its own, which computes every answer anew."""
    jobs = tmp_path_factory.mktemp("jobs")
    settings = {"similarity_file": measure, "tagger": tagger, "jobs_dir": jobs, "jobs": 10_000}
    with Process("small", store, cache_bytes=0, **settings) as running:
        yield running.ready()


def made_up(number: int, lengths: range, seed: int) -> list[list[str]]:
    """Make distinct sentences out of the small treebank's words."""
    return distinct_sentences(TREES, number, lengths, seed)
