"""`lpcfg bound`: how many trees the theorems ask for, for a known grammar."""

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from lpcfg.cli.options import Json, wrong_usage
from lpcfg.cli.terminal import result, result_json, result_table


def bound(
    grammar: Annotated[
        Path, typer.Argument(metavar="GRAMMAR.toml", help="A file like examples/two_state.toml.")
    ],
    epsilon: Annotated[
        float, typer.Option(help="Largest error: Σ |p̂ − p| over all trees of the size.")
    ] = 0.1,
    delta: Annotated[float, typer.Option(help="How likely a larger error may be.")] = 0.05,
    size: Annotated[int, typer.Option(metavar="N", min=1, help="Binary rules of a tree.")] = 3,
    json: Json = False,
) -> None:
    """Print how many trees the spectral method needs in the worst case: theorem 8 as numbers.

    Also the bound of the ACL 2012 paper, on p̂ / p of one tree. Both assume that the nodes which are
    learned from are independent; features are the rules at and beside a node.
    """
    from lpcfg.grammar.known import read_lpcfg
    from lpcfg.theory.bound import acl_theorem_3, theorem_8
    from lpcfg.theory.exact_moments import ExactMoments

    tables = read_lpcfg(grammar)
    moments = ExactMoments.of(tables).scaled()
    with wrong_usage():
        found = theorem_8(moments, epsilon, delta, size)
        relative = acl_theorem_3(moments, epsilon, delta, size)
    if json:
        result_json({**found.as_json(), "acl_2012": relative.as_json()})
        return
    heading = ("symbol", "m", "σ", "ξ", "nodes a tree", "nodes for Ω", "nodes for other moments")
    result_table(
        [
            heading,
            *(
                (
                    one.symbol,
                    str(one.states),
                    f"{one.sigma:.4g}",
                    f"{one.xi:.4g}",
                    f"{one.visits:.3g}",
                    _count(one.omega_nodes),
                    _count(one.moment_nodes),
                )
                for one in found.symbols
            ),
        ]
    )
    if found.impossible:
        result(f"\nThe bound is infinite: {found.impossible}.")
    result(f"\nρ {found.rho:.4g}, roots {_count(found.roots)}")
    result(
        f"Theorem 8: with {_count(found.omega_trees)} trees for Ω and {_count(found.moment_trees)} "
        f"others, trees of {size} binary rules have Σ |p̂ − p| ≤ {epsilon:g} with probability "
        f"{1 - delta:g}."
    )
    result(
        f"ACL 2012, theorem 3: {_count(relative.trees)} trees for p̂ / p of one such tree between "
        f"{1 - epsilon:g} and {1 + epsilon:g} (Λ {relative.least:.3g}, σ {relative.sigma:.3g})."
    )
    result("Both are worst cases, and take the nodes of all trees as independent.")


def _count(number: float) -> str:
    return f"{number:.3g}" if isfinite(number) else "infinitely many"
