"""Estimate the members of a model here, or on the workers of a dask.distributed scheduler.

The sums of a member whose estimator shares them are made by the workers, shard by shard of the
treebank. Any other member is one task, and the data that such members learn from are a task of
their own, which the scheduler keeps. If a worker dies, another one repeats its work and gets the
same numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import getitem
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from lpcfg.base.errors import TrainingError
from lpcfg.grammar.tables import Tables
from lpcfg.training.config import Member
from lpcfg.training.estimators.registry import Facts, Job, estimator
from lpcfg.training.hands import folded
from lpcfg.training.stages import StageRecord, Stages

Learned = tuple[Tables, Facts]
PATIENCE = 30.0
"""Seconds within which a scheduler has to answer and to have a worker."""


def map_members(
    jobs: Sequence[Job], members: Sequence[Member], scheduler: str | None = None
) -> list[Learned]:
    """Estimate every member from its job. Jobs differ only in their seeds and stages."""
    if scheduler is None:
        return [learn(job, member) for job, member in zip(jobs, members, strict=True)]
    with connected(scheduler) as client, _told_of_deaths():
        whole = {k for k, one in enumerate(members) if not estimator(one.estimator).shares}
        basis = None
        if whole:
            alone = replace(jobs[0], stages=jobs[0].stages.apart())
            basis = client.submit(_given, alone, pure=False)
        tasks = {
            k: client.submit(
                _learn, basis, jobs[k].seed, jobs[k].stages.apart(), members[k], pure=False
            )
            for k in sorted(whole)
        }
        hands = Workers(client)
        return [
            _fetched(job, tasks[k]) if k in whole else learn(replace(job, hands=hands), member)
            for k, (job, member) in enumerate(zip(jobs, members, strict=True))
        ]


def _fetched(job: Job, task: Any) -> Learned:
    """Wait for a member that a worker learns."""
    tables, facts, records = task.result()
    job.stages.records.extend(records)
    return replace(tables, grammar=job.examples.grammar), facts


@contextmanager
def _told_of_deaths() -> Iterator[None]:
    """Turn the deaths of too many workers into an error of training."""
    from distributed import CancelledError, KilledWorker

    try:
        yield
    except (KilledWorker, CancelledError) as error:
        raise TrainingError(
            f"expected workers that live until a member is learned, got: {error}: see what ended "
            "them (memory?) and train again"
        ) from error


class Workers:
    """The workers of a scheduler, as hands (see `hands`).

    The client submits the merges of two results right behind the second of them, and the scheduler
    prefers what was submitted first. So few results wait to be merged.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def each(self, do: Callable[..., Any], parts: Iterable[Any], *shared: Any) -> list[Any]:
        return [self._submit(do, part, *shared) for part in parts]

    def totals(
        self,
        do: Callable[..., Sequence[Any]],
        parts: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        places: int,
        *shared: Any,
    ) -> list[Any]:
        from distributed import wait

        def merged(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
            return [self._submit(merge, *both) for both in zip(one, other, strict=True)]

        def made() -> Iterator[list[Any]]:
            for part in parts:
                whole = self._submit(do, part, *shared)
                yield [self._submit(getitem, whole, place) for place in range(places)]

        totals: list[Any] = folded(made(), merged)
        with self._client.as_current():
            wait(totals)  # type: ignore[no-untyped-call]
        return totals

    def results(self, made: Sequence[Any]) -> list[Any]:
        results: list[Any] = self._client.gather(list(made))
        return results

    def _submit(self, do: Callable[..., Any], *given: Any) -> Any:
        key = f"{do.__name__}-{uuid4().hex}"
        return self._client.submit(_single, do, *given, key=key)


def learn(job: Job, member: Member) -> Learned:
    """Estimate one member. Return its tables and facts."""
    tables, told = estimator(member.estimator).estimate(job, member.settings)
    return tables, {"estimator": member.estimator, "seed": job.seed, **told}


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to the scheduler at an address, which must have at least one worker."""
    try:
        import dask
        from distributed import Client
        from distributed.comm.addressing import parse_address, parse_host_port
    except ImportError as error:
        raise TrainingError(
            "expected the package `distributed` to reach a scheduler, found none: "
            "pip install 'lpcfg[distributed]', or work without a scheduler"
        ) from error
    # A treebank is a large task, but is sent once.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10GB"}):
        try:
            protocol, place = parse_address(address)
            if protocol == "tcp":
                parse_host_port(place)  # a client of what is no address would wait for a minute
            client = Client(  # type: ignore[no-untyped-call]
                address, timeout=PATIENCE, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise _nobody(f"a scheduler at {address}", error) from error
        with client:
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except OSError as error:
                raise _nobody(f"a worker of the scheduler at {address}", error) from error
            yield client


def _nobody(expected: str, error: Exception) -> TrainingError:
    return TrainingError(
        f"expected {expected}, got: {error}: start `dask scheduler`, and `dask worker ADDRESS` "
        "where lpcfg is installed"
    )


# On a worker --------------------------------------------------------------------------------------


def _single(do: Callable[..., Any], *given: Any) -> Any:
    """Work with one thread of BLAS, whose number would change the last bits."""
    with threadpool_limits(1):
        return do(*given)


def _given(job: Job) -> Job:
    return job


def _learn(
    basis: Job, seed: int, stages: Stages, member: Member
) -> tuple[Tables, Facts, list[StageRecord]]:
    tables, facts = learn(replace(basis, seed=seed, stages=stages), member)
    return tables, facts, stages.records
