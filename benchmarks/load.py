"""The service under load: overload, and a soak.

    python -m benchmarks.load overload --seconds 60 --json
    python -m benchmarks.load soak --sentences 20000 --json

`overload` first keeps the service just busy, with as many clients as it lets in, then offers ten
times the rate it managed: goodput, latencies of what was let in, and memory, beside those before.
`soak` sends sentences that are all distinct and tells how memory grows with them.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.serving import Connection, Lost, Process, percentile

from lpcfg.settings import read_settings
from lpcfg.trees.brackets import read

QUEUE = 4
"""Requests that may wait: few, so that admitted requests are answered soon."""
Body = bytes


@dataclass(frozen=True)
class Load:
    """Answers under load: seconds of admitted requests, and counts of each kind of answer."""

    seconds: tuple[float, ...]
    refused: int
    lost: int
    lasted: float

    @property
    def rate(self) -> float:
        """Good answers per second."""
        return len(self.seconds) / self.lasted


@dataclass(frozen=True)
class Overload:
    """The service at its peak, and with ten times as much offered."""

    peak_per_second: float
    goodput_per_second: float
    refused_per_second: float
    peak_p99_ms: float
    overload_p99_ms: float
    lost: int
    memory_before: int
    memory_after: int


def overload(process: Process, bodies: Sequence[Body], seconds: float, threads: int) -> Overload:
    """Offer ten times the load that keeps the service just busy, for so many seconds."""
    asyncio.run(busy(process, bodies, min(seconds, 2.0), threads + QUEUE))  # caches, pages, pools
    peak = asyncio.run(busy(process, bodies, seconds, threads + QUEUE))
    before = process.resident_bytes()
    over = asyncio.run(offered(process, bodies, seconds, 10 * peak.rate))
    return Overload(
        peak_per_second=peak.rate,
        goodput_per_second=over.rate,
        refused_per_second=over.refused / over.lasted,
        peak_p99_ms=1e3 * percentile(peak.seconds, 0.99),
        overload_p99_ms=1e3 * percentile(over.seconds, 0.99),
        lost=peak.lost + over.lost,
        memory_before=before,
        memory_after=process.resident_bytes(),
    )


async def busy(process: Process, bodies: Sequence[Body], seconds: float, clients: int) -> Load:
    """Run `clients` clients, each of which asks again as soon as it is answered."""
    counted = _Counted()
    end = time.monotonic() + seconds

    async def client(number: int) -> None:
        connection, turn = Connection(process.port), number
        while time.monotonic() < end:
            await counted.ask(connection, bodies[turn % len(bodies)])
            turn += clients
        await connection.close()

    started = time.monotonic()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return counted.load(time.monotonic() - started)


async def offered(process: Process, bodies: Sequence[Body], seconds: float, rate: float) -> Load:
    """Send requests at this rate, without waiting for answers."""
    counted, idle = _Counted(), [Connection(process.port) for _ in range(8)]
    asking: set[asyncio.Task[None]] = set()

    async def ask(body: Body) -> None:
        connection = idle.pop() if idle else Connection(process.port)
        await counted.ask(connection, body)
        idle.append(connection)

    started, number = time.monotonic(), 0
    while (now := time.monotonic() - started) < seconds:
        while number < now * rate:
            task = asyncio.create_task(ask(bodies[number % len(bodies)]))
            asking.add(task)
            task.add_done_callback(asking.discard)
            number += 1
        await asyncio.sleep(0.005)
    lasted = time.monotonic() - started
    await asyncio.gather(*asking)
    for connection in idle:
        await connection.close()
    return counted.load(lasted)


class _Counted:
    """Counts the answers."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.refused = self.lost = 0

    async def ask(self, connection: Connection, body: Body) -> None:
        started = time.perf_counter()
        try:
            answer = await connection.ask("POST", "/v1/parse", body)
        except (Lost, OSError):
            self.lost += 1
            return
        if answer.status == 200:
            self.seconds.append(time.perf_counter() - started)
        elif answer.status == 503 and int(answer.headers["retry-after"]) >= 1:
            self.refused += 1
        else:
            raise RuntimeError(f"expected 200 or 503 with Retry-After, got {answer}")

    def load(self, lasted: float) -> Load:
        return Load(tuple(self.seconds), self.refused, self.lost, lasted)


@dataclass(frozen=True)
class Soak:
    """The growth of memory over the second half of the sentences."""

    sentences: int
    bytes_per_sentence: float
    standard_error: float
    resident_bytes: int

    @property
    def is_flat(self) -> bool:
        """True if the slope cannot be told from zero, at three standard errors, or is negligible.

        Growth below a thousandth is negligible: the heap grows by some pages when rare combinations
        of large blocks occur.
        """
        grown = abs(self.bytes_per_sentence) * self.sentences / 2
        is_noise = abs(self.bytes_per_sentence) <= 3 * self.standard_error
        return is_noise or grown < self.resident_bytes / 1000


def soak(process: Process, sentences: Sequence[Sequence[str]], batch: int = 50) -> Soak:
    """Send every sentence once, in batches, and measure the memory after each.

    The slope is that of the second half, by least squares. Neighbouring measurements are not
    independent, so they are first averaged in ten blocks.
    """
    looks: list[tuple[float, float]] = []

    async def send() -> None:
        connection = Connection(process.port)
        for start in range(0, len(sentences), batch):
            value = {"sentences": [{"tokens": one} for one in sentences[start : start + batch]]}
            answer = await connection.ask("POST", "/v1/parse", value)
            if answer.status != 200:
                raise RuntimeError(f"expected 200, got {answer}")
            looks.append((start + batch, process.resident_bytes()))
        await connection.close()

    asyncio.run(send())
    half = looks[len(looks) // 2 :]
    size = max(len(half) // 10, 1)
    blocks = [half[start : start + size] for start in range(0, size * 10, size)]
    x = [statistics.fmean(one[0] for one in block) for block in blocks if block]
    y = [statistics.fmean(one[1] for one in block) for block in blocks if block]
    slope, intercept = statistics.linear_regression(x, y)
    rest = sum((b - slope * a - intercept) ** 2 for a, b in zip(x, y, strict=True))
    spread = sum((a - statistics.fmean(x)) ** 2 for a in x)
    error = (rest / (len(x) - 2) / spread) ** 0.5
    return Soak(len(sentences), slope, error, int(y[-1]))


def distinct_sentences(trees: Path, number: int, lengths: range, seed: int) -> list[list[str]]:
    """Make distinct sentences of the words of a treebank."""
    draw = random.Random(seed)
    known = sorted({word for tree in read(trees) for word in tree.tokens()})
    found: dict[tuple[str, ...], None] = {}
    while len(found) < number:
        found[tuple(draw.choices(known, k=draw.choice(lengths)))] = None
    return [list(one) for one in found]


def request_of(sentences: Sequence[Sequence[str]]) -> Body:
    """Create the body that asks for these sentences."""
    return json.dumps({"sentences": [{"tokens": one} for one in sentences]}).encode()


def main() -> None:
    arguments = _arguments()
    store = read_settings(model_store=arguments.store).model_store
    threads = len(os.sched_getaffinity(0))
    record: dict[str, Any]
    if arguments.what == "overload":
        made = distinct_sentences(arguments.trees, 400, range(10, 31), seed=1)
        bodies = [request_of(made[start : start + 40]) for start in range(0, 400, 40)]
        with Process(arguments.model, store, queue=QUEUE, cache_bytes=0) as process:
            process.ready()
            record = asdict(overload(process, bodies, arguments.seconds, threads))
    else:
        # of one length: CPython keeps up to 2,000 freed tuples of each, which takes a while to fill
        made = distinct_sentences(arguments.trees, arguments.sentences, range(10, 11), seed=1)
        with Process(arguments.model, store, cache_bytes=1 << 20) as process:
            process.ready()
            found = soak(process, made)
        record = {**asdict(found), "is_flat": found.is_flat}
    record = {"what": arguments.what, **record, "model": arguments.model, "threads": threads}
    print(json.dumps(record) if arguments.json else record)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("overload", "soak"))
    parser.add_argument("--model", default="en")
    parser.add_argument("--store")
    parser.add_argument("--trees", type=Path, default=Path("examples/small.mrg"))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--json", action="store_true", help="one object")
    return parser.parse_args()


if __name__ == "__main__":
    main()
