"""The cost of HTTP: the service compared with the engine called directly, on the same sentences.

    python -m benchmarks.http --model en trees.mrg --json

It prints two lines: single sentences one after the other, and batches on as many connections as
keep the service busy. Answers are compared with the engine's before anything is timed, and nothing
is cached. With --threads 1 on two cores, the client has a core of its own.

The time of a request begins when its bytes, written before, are sent, and ends with the last byte
of the answer, which is not read as JSON. So all that the service does is counted, its own writing
of JSON and the kernel's part as well, and of the client no more than two calls of a socket. The
engine's time ends with its result in Python. Engine and service take turns, a second or so each,
because other work on a machine comes and goes.
"""

import argparse
import json
import os
import platform
import queue
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.serving import Caller, Process, percentile, prepared

from lpcfg.kinds.constituency.answer import analysis_json
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence
from lpcfg.settings import read_settings
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize

T = TypeVar("T")
BATCH = 64
_TURN = 4  # batches


def main() -> None:
    arguments = _arguments()
    store = read_settings(model_store=arguments.store).model_store
    sentences = _sentences(arguments.trees, arguments.sentences, arguments.max_words)
    parser = Parser.load(arguments.model, store)
    with Process(arguments.model, store, threads=arguments.threads, cache_bytes=0) as process:
        process.ready()
        _check_agreement(process, parser, sentences[:BATCH])
        records = [
            {**_single(process, parser, sentences), **_setting(arguments)},
            {**_batches(process, parser, sentences, arguments.threads), **_setting(arguments)},
        ]
    for record in records:
        print(json.dumps(record) if arguments.json else record)


def _check_agreement(process: Process, parser: Parser, sentences: Sequence[Sentence]) -> None:
    answer = process.ask("POST", "/v1/parse", _asked(sentences)).json()
    expected = [analysis_json(analysis) for analysis in parser.parse(sentences)]
    if answer["sentences"] != expected:
        raise SystemExit("the service and the engine answer differently: nothing to compare")


def _single(process: Process, parser: Parser, sentences: Sequence[Sentence]) -> dict[str, Any]:
    requests = [_request([sentence]) for sentence in sentences]
    engine, web = list[float](), list[float]()
    with Caller(process.port) as caller:
        for turn in _turns(len(sentences), BATCH):
            engine += [_seconds(parser.parse, [sentence]) for sentence in sentences[turn]]
            web += [_seconds(caller.ask, request) for request in requests[turn]]
    added = [there - here for here, there in zip(engine, web, strict=True)]
    return {
        "what": "single sentences",
        "engine_p50_ms": 1e3 * percentile(engine, 0.5),
        "engine_p99_ms": 1e3 * percentile(engine, 0.99),
        "http_p50_ms": 1e3 * percentile(web, 0.5),
        "http_p99_ms": 1e3 * percentile(web, 0.99),
        "http_adds_ms": 1e3 * sum(added) / len(added),
        "http_adds_p50_ms": 1e3 * percentile(added, 0.5),
    }


def _batches(
    process: Process, parser: Parser, sentences: Sequence[Sentence], threads: int
) -> dict[str, Any]:
    batches = [sentences[turn] for turn in _turns(len(sentences), BATCH)]
    requests = [_request(batch) for batch in batches]
    callers = queue.SimpleQueue[Caller]()
    for _ in range(2 * threads):  # one batch waits while another is worked on
        callers.put(Caller(process.port))

    def ask(request: bytes) -> float:
        caller = callers.get()
        try:
            return _seconds(caller.ask, request)
        finally:
            callers.put(caller)

    engine = web = 0.0
    latencies = list[float]()
    with ThreadPoolExecutor(threads) as pool, ThreadPoolExecutor(2 * threads) as clients:
        for turn in _turns(len(batches), _TURN * threads):
            engine += _seconds(lambda few: list(pool.map(parser.parse, few)), batches[turn])
            web += _seconds(lambda few: latencies.extend(clients.map(ask, few)), requests[turn])
    return {
        "what": f"batches of {BATCH}",
        "engine_sentences_per_second": len(sentences) / engine,
        "http_sentences_per_second": len(sentences) / web,
        "http_requests_per_second": len(batches) / web,
        "http_p50_ms": 1e3 * percentile(latencies, 0.5),
        "http_p99_ms": 1e3 * percentile(latencies, 0.99),
        "http_costs_percent": 100 * (1 - engine / web),
    }


def _turns(number: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, number, size))


def _seconds(work: Callable[[T], object], given: T) -> float:
    started = time.perf_counter()
    work(given)
    return time.perf_counter() - started


def _request(sentences: Sequence[Sentence]) -> bytes:
    return prepared("POST", "/v1/parse", _asked(sentences))


def _asked(sentences: Sequence[Sentence]) -> dict[str, Any]:
    return {"sentences": [{"tokens": one.tokens} for one in sentences]}


def _sentences(trees: Sequence[str], most: int, max_words: int) -> list[Sentence]:
    cleaned = (normalize(tree) for tree in read([Path(one) for one in trees]))
    tokens = (tuple(tree.tokens()) for tree in cleaned if tree is not None)
    found = list(islice((one for one in tokens if len(one) <= max_words), most))
    return [Sentence(one) for one in found]


def _setting(arguments: argparse.Namespace) -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "model": arguments.model,
        "sentences": arguments.sentences,
        "threads": arguments.threads,
        "cores": os.cpu_count(),
        "cpu": platform.processor() or platform.machine(),
        "numpy": version("numpy"),
        "uvicorn": version("uvicorn"),
        "commit": commit,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trees", nargs="+", help="bracketed trees; their words are parsed")
    parser.add_argument("--model", default="en")
    parser.add_argument("--store")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--max-words", type=int, default=60)
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
