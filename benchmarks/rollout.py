"""Reload models and roll out replicas under load, and count requests without an answer.

    python -m benchmarks.rollout --reloads 50 --restarts 20 --model en

Clients send plain requests without a pause over connections that they keep open. First one process
reloads its model again and again, each time a version just published. Then a replica after the
other is replaced as a rollout does it: the new one is ready before the old one gets SIGTERM, and
clients learn a third of a second later that it is gone, as from a balancer. A request that was sent
and not answered, or not with 200, is lost. Exit code 1 if there is one.
"""

import argparse
import asyncio
import hashlib
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.environment import Record, environment
from benchmarks.serving import Connection, Lost, Process, percentile
from tests import small_models

from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.settings import read_settings
from lpcfg.store.files import Bundle
from lpcfg.store.versions import load, publish, remove

CLIENTS = 6
ADMIN = "an administrator's key"
LATE = 0.3
"""Seconds until clients know that a replica is gone."""
TEXTS = ("The dog saw a cat.", "The old man slept in the house.", "A cat and a dog ran.")
Work = Callable[[], Awaitable[None]]


class Clients:
    """Clients that send one request after the other to the ports they know of."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports
        self.told: Counter[str] = Counter()
        self.seconds: list[float] = []
        self._done = asyncio.Event()

    async def during(self, work: Work) -> None:
        """Send requests while the work is done."""
        clients = [asyncio.create_task(self._client(number)) for number in range(CLIENTS)]
        try:
            await work()
        finally:
            self._done.set()
            await asyncio.gather(*clients)

    async def _client(self, number: int) -> None:
        chance, open_ones = random.Random(number), dict[int, Connection]()
        while not self._done.is_set():
            port = chance.choice(self.ports)
            connection = open_ones.setdefault(port, Connection(port))
            started = time.perf_counter()
            try:
                text = f"{chance.choice(TEXTS)} {chance.random()}"
                answer = await connection.ask("POST", "/v1/parse", {"text": text})
            except Lost:
                self.told["lost"] += 1
            except OSError:  # not accepted: a balancer tries another replica
                self.told["tried again"] += 1
                await asyncio.sleep(0.01)
            else:
                self.told["answered" if answer.status == 200 else f"status {answer.status}"] += 1
                self.seconds.append(time.perf_counter() - started)
        for connection in open_ones.values():
            await connection.close()

    def record(self, what: str, **facts: Any) -> Record:
        """Return what became of the requests."""
        answered = self.told.pop("answered", 0)
        again = self.told.pop("tried again", 0)
        return {
            "what": what,
            "answered": answered,
            "lost": sum(self.told.values()),
            "how": dict(self.told),
            "tried_again": again,
            "p99_ms": round(1000 * percentile(self.seconds, 0.99), 1),
            **facts,
        }


async def reloads(store: Path, name: str, bundle: Bundle, count: int) -> Record:
    """Reload one process so many times, and tell how its memory settles."""
    keys = store / "admins"
    keys.write_text(f"me {hashlib.sha256(ADMIN.encode()).hexdigest()}\n", encoding="utf-8")
    with Process(name, store, admin_keys_file=keys) as process:
        process.ready()
        clients, memory = Clients([process.port]), [process.resident_bytes()]

        async def work() -> None:
            key = {"Authorization": f"Bearer {ADMIN}"}
            path = f"/v1/models/{name}/reload"
            for _ in range(count):
                newest = (await asyncio.to_thread(publish, store, name, bundle)).version
                told = await asyncio.to_thread(process.ask, "POST", path, None, key)
                assert told.json()["version"] == newest, told.body
                await asyncio.to_thread(remove, f"{name}@{newest - 1}", store)
                memory.append(process.resident_bytes())

        await clients.during(work)
        megabytes = [round(one / 1e6) for one in memory]
        return clients.record(
            f"{count} reloads",
            rss_mb={
                "start": megabytes[0],
                "tenth": megabytes[min(10, count)],
                "end": megabytes[-1],
            },
        )


async def restarts(store: Path, name: str, count: int) -> Record:
    """Replace one of two replicas so many times."""
    running: list[Process] = []
    clients, codes = Clients([]), Counter[int]()

    async def work() -> None:
        for _ in range(count):
            new = await asyncio.to_thread(_started, store, name)
            clients.ports.append(new.port)
            running.append(new)
            await asyncio.sleep(0.2)
            old = running.pop(0)
            ending = asyncio.create_task(asyncio.to_thread(old.terminate))
            await asyncio.sleep(LATE)
            clients.ports.remove(old.port)
            codes[await ending] += 1
            old.__exit__(None, None, None)

    try:
        for _ in range(2):
            running.append(_started(store, name))
            clients.ports.append(running[-1].port)
        await clients.during(work)
    finally:
        for one in running:
            one.__exit__(None, None, None)
    return clients.record(f"{count} rolling restarts", exit_codes=dict(codes))


def _started(store: Path, name: str) -> Process:
    process = Process(name, store, drain_seconds=1.0)
    process.__enter__()
    try:
        return process.ready()
    except RuntimeError:
        process.__exit__(None, None, None)
        raise


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reloads", type=int, default=50)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--model", help="a model of the store; by default a small one is trained")
    arguments = parser.parse_args()
    # as Ctrl-C does, it ends the processes too
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as place:
        store, name = Path(place), arguments.model or "small"
        if arguments.model is None:
            bundle = to_bundle(small_models.spectral(), facts={}, card="# Small")
        else:
            stored = load(name, read_settings().model_store)
            facts = stored.manifest["facts"]
            bundle = Bundle(dict(stored.tensors), stored.grammar, facts, stored.card)  # type: ignore[arg-type]
        publish(store, name, bundle)
        lost = 0
        for part in (
            reloads(store, name, bundle, arguments.reloads),
            restarts(store, name, arguments.restarts),
        ):
            record = asyncio.run(part)
            print(json.dumps({**record, "model": name, **environment(0)}), flush=True)
            lost += record["lost"]
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
