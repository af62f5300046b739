"""The cost of HTTP: the service compared with the engine called directly, on the same sentences.

    python -m benchmarks.http --model en trees.mrg --json

It prints two lines: single sentences one after the other, and batches on as many connections as
keep the service busy. Answers are compared with the engine's before anything is timed, and nothing
is cached. With --threads 1 on two cores, the client has a core of its own.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.serving import Connection, Process, percentile

from lpcfg.parsing.parser import Parser
from lpcfg.parsing.results import Sentence
from lpcfg.parsing.to_json import analysis_json
from lpcfg.settings import read_settings
from lpcfg.trees.brackets import read
from lpcfg.trees.normalize import normalize

BATCH = 64


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
    answer = process.ask("POST", "/v1/parse", _request(sentences)).json()
    expected = [analysis_json(analysis) for analysis in parser.parse(sentences)]
    if answer["sentences"] != expected:
        raise SystemExit("the service and the engine answer differently: nothing to compare")


def _single(process: Process, parser: Parser, sentences: Sequence[Sentence]) -> dict[str, Any]:
    engine = []
    for sentence in sentences:
        started = time.perf_counter()
        parser.parse([sentence])
        engine.append(time.perf_counter() - started)

    async def ask() -> list[float]:
        connection, seconds = Connection(process.port), []
        for sentence in sentences:
            started = time.perf_counter()
            await connection.ask("POST", "/v1/parse", _request([sentence]))
            seconds.append(time.perf_counter() - started)
        await connection.close()
        return seconds

    web = asyncio.run(ask())
    return {
        "what": "single sentences",
        "engine_p50_ms": 1e3 * percentile(engine, 0.5),
        "engine_p99_ms": 1e3 * percentile(engine, 0.99),
        "http_p50_ms": 1e3 * percentile(web, 0.5),
        "http_p99_ms": 1e3 * percentile(web, 0.99),
        "http_adds_ms": 1e3 * (sum(web) - sum(engine)) / len(sentences),
    }


def _batches(
    process: Process, parser: Parser, sentences: Sequence[Sentence], threads: int
) -> dict[str, Any]:
    batches = [sentences[start : start + BATCH] for start in range(0, len(sentences), BATCH)]
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(parser.parse, batches))
    engine = len(sentences) / (time.perf_counter() - started)
    latencies: list[float] = []

    async def client(waiting: list[Sequence[Sentence]]) -> None:
        connection = Connection(process.port)
        while waiting:
            batch, began = waiting.pop(), time.perf_counter()
            await connection.ask("POST", "/v1/parse", _request(batch))
            latencies.append(time.perf_counter() - began)
        await connection.close()

    async def clients() -> None:
        waiting = list(reversed(batches))
        await asyncio.gather(*(client(waiting) for _ in range(2 * threads)))

    started = time.perf_counter()
    asyncio.run(clients())
    web = len(sentences) / (time.perf_counter() - started)
    return {
        "what": f"batches of {BATCH}",
        "engine_sentences_per_second": engine,
        "http_sentences_per_second": web,
        "http_requests_per_second": web / BATCH,
        "http_p50_ms": 1e3 * percentile(latencies, 0.5),
        "http_p99_ms": 1e3 * percentile(latencies, 0.99),
        "http_costs_percent": 100 * (1 - web / engine),
    }


def _request(sentences: Sequence[Sentence]) -> dict[str, Any]:
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
