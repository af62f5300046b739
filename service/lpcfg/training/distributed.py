"""Estimate the members of a model here, or on the workers of a dask.distributed scheduler.

The sums of a member whose estimator shares them are made by the workers, shard by shard of the
treebank. Any other member is one task, and the data that such members learn from are a task of
their own, which the scheduler keeps. If a worker dies, another one repeats its work and gets the
same numbers.
"""

from collections.abc import Sequence
from dataclasses import replace

from lpcfg.base.executors import Dask
from lpcfg.grammar.tables import Tables
from lpcfg.training.config import Member
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.registry import Facts, estimator
from lpcfg.training.stages import StageRecord, Stages

Learned = tuple[Tables, Facts]


def map_members(
    all_inputs: Sequence[EstimatorInputs], members: Sequence[Member], scheduler: str | None = None
) -> list[Learned]:
    """Estimate every member from its inputs. Jobs differ only in their seeds and stages."""
    if scheduler is None:
        return [learn(inputs, member) for inputs, member in zip(all_inputs, members, strict=True)]
    with Dask(scheduler) as executor:
        whole = [k for k, one in enumerate(members) if not estimator(one.estimator).shares]
        tasks = {}
        if whole:
            given = [(all_inputs[k].seed, all_inputs[k].stages.apart(), members[k]) for k in whole]
            alone = replace(all_inputs[0], stages=all_inputs[0].stages.apart())
            basis = executor.map(_given, [alone])
            tasks = dict(zip(whole, executor.map(_learn, given, *basis), strict=True))
        learned = []
        for k, (inputs, member) in enumerate(zip(all_inputs, members, strict=True)):
            if k not in tasks:
                learned.append(learn(replace(inputs, executor=executor), member))
                continue
            [(tables, facts, records)] = executor.gather([tasks[k]])
            inputs.stages.records.extend(records)
            learned.append((replace(tables, grammar=inputs.examples.grammar), facts))
        return learned


def learn(inputs: EstimatorInputs, member: Member) -> Learned:
    """Estimate one member. Return its tables and facts."""
    tables, told = estimator(member.estimator).estimate(inputs, member.settings)
    return tables, {"estimator": member.estimator, "seed": inputs.seed, **told}


def _given(inputs: EstimatorInputs) -> EstimatorInputs:
    return inputs


def _learn(
    given: tuple[int, Stages, Member], basis: EstimatorInputs
) -> tuple[Tables, Facts, list[StageRecord]]:
    """Estimate a member on a worker, which has the data."""
    seed, stages, member = given
    tables, facts = learn(replace(basis, seed=seed, stages=stages), member)
    return tables, facts, stages.records
