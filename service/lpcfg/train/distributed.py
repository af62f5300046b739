"""Estimate the members of a model here, or on the workers of a dask.distributed scheduler.

A member is one task. The data that members learn from are a task of their own, which the scheduler
keeps. If a worker dies, another one repeats its work and gets the same numbers.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lpcfg.errors import TrainingError
from lpcfg.grammar.tables import Tables
from lpcfg.train.config import Member
from lpcfg.train.estimators.registry import Facts, Job, estimator
from lpcfg.train.stages import StageRecord, Stages

Learned = tuple[Tables, Facts]
PATIENCE = 30.0
"""Seconds within which a scheduler has to answer and to have a worker."""


def map_members(
    jobs: Sequence[Job], members: Sequence[Member], scheduler: str | None = None
) -> list[Learned]:
    """Estimate every member from its job. Jobs differ only in their seeds and stages."""
    if scheduler is None:
        return [learn(job, member) for job, member in zip(jobs, members, strict=True)]
    with connected(scheduler) as client:
        basis = client.submit(_given, replace(jobs[0], stages=jobs[0].stages.apart()), pure=False)
        tasks = [
            client.submit(_learn, basis, job.seed, job.stages.apart(), member, pure=False)
            for job, member in zip(jobs, members, strict=True)
        ]
        results = _gathered(client, tasks)
    learned = []
    for job, (tables, facts, records) in zip(jobs, results, strict=True):
        job.stages.records.extend(records)
        learned.append((replace(tables, grammar=job.examples.grammar), facts))
    return learned


def _gathered(client: Any, tasks: Sequence[Any]) -> list[tuple[Tables, Facts, list[StageRecord]]]:
    from distributed import CancelledError, KilledWorker

    try:
        results: list[tuple[Tables, Facts, list[StageRecord]]] = client.gather(tasks)
    except (KilledWorker, CancelledError) as error:
        raise TrainingError(
            f"expected workers that live until a member is learned, got: {error}: see what ended "
            "them (memory?) and train again"
        ) from error
    return results


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


def _given(job: Job) -> Job:
    return job


def _learn(
    basis: Job, seed: int, stages: Stages, member: Member
) -> tuple[Tables, Facts, list[StageRecord]]:
    tables, facts = learn(replace(basis, seed=seed, stages=stages), member)
    return tables, facts, stages.records
