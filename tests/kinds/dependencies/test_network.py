"""The network's derivatives, its batches, and what learning it does."""

import numpy as np
import pytest

from lpcfg.kinds.dependencies import eisner, learning, network, recurrence
from lpcfg.kinds.dependencies.learning import Example, NetworkSettings
from lpcfg.kinds.dependencies.network import Sizes

ROWS = {"word": 6, "end2": 4, "end3": 4, "end4": 4, "start3": 4, "shape": 3}
PLAIN = NetworkSettings(layer=8, arc=5, relation=4, pair=3, left_out=0.0, words_left_out=0.0)


def example(n: int, seed: int) -> Example:
    random = np.random.default_rng(seed)
    rows = np.stack([random.integers(0, size, n) for size in (*ROWS.values(), 5)], axis=1)
    heads = np.array([*range(2, n + 1), 0])
    return Example(rows, heads, random.integers(0, 3, n), random.integers(0, 4, n))


@pytest.fixture
def parameters() -> dict[str, np.ndarray]:
    drawn = network.initial(ROWS, 3, Sizes(8, 5, 4, 3, 3, 4), seed=0)
    # In double precision, as differences of losses are taken.
    return {name: array.astype(np.float64) for name, array in drawn.items()}


def loss_and_gradients(p: dict[str, np.ndarray], examples: list[Example]) -> tuple[float, dict]:
    vectors = np.random.default_rng(9).normal(size=(5, 3)).astype(np.float32)
    random = np.random.default_rng(0)
    single = {name: array.astype(np.float32) for name, array in p.items()}
    gradients, loss = learning.batch_gradients(single, examples, vectors, PLAIN, random)
    return loss, gradients


def test_derivatives_are_those_of_differences(parameters: dict[str, np.ndarray]) -> None:
    """Central differences of a loss in single precision: good to some 2 % where not tiny."""
    examples = [example(4, 1), example(1, 2), example(6, 3)]
    _, gradients = loss_and_gradients(parameters, examples)
    random, step = np.random.default_rng(4), 2e-3
    for name, array in parameters.items():
        direction = random.normal(size=array.shape)
        if name.startswith("table"):
            direction[0] = 0  # row 0 never moves
        direction /= np.linalg.norm(direction)
        up, down = ({**parameters, name: array + s * direction} for s in (step, -step))
        by_difference = (
            loss_and_gradients(up, examples)[0] - loss_and_gradients(down, examples)[0]
        ) / (2 * step)
        gradient = gradients[name]
        if isinstance(gradient, tuple):
            dense = np.zeros(array.shape)
            np.add.at(dense, gradient[0], gradient[1])
            gradient = dense
        assert float((gradient * direction).sum()) == pytest.approx(
            by_difference, rel=0.03, abs=0.01
        ), name


def test_sentences_of_a_batch_do_not_see_each_other(parameters: dict[str, np.ndarray]) -> None:
    p = {name: array.astype(np.float32) for name, array in parameters.items()}
    examples = [example(4, 1), example(1, 2), example(6, 3)]
    vectors = np.ones((5, 3), np.float32)
    together = network.batch_of([one.rows for one in examples])
    first, last = network.encode(p, together, vectors[together.rows[:, -1]])
    assert len(network.word_rows(together)) == 11
    for one, start in zip(examples, together.first, strict=True):
        alone = network.batch_of([one.rows])
        c, e = network.encode(p, alone, vectors[alone.rows[:, -1]])
        words = slice(start, start + len(one.rows))
        np.testing.assert_allclose(first[words], c[1:-1], atol=1e-5)
        np.testing.assert_allclose(last[words], e[1:-1], atol=1e-5)


def test_a_layer_reads_the_sentence_in_both_directions() -> None:
    """Compare with the formula, a word and a number at a time."""
    gates = np.tanh(np.random.default_rng(0).normal(size=(6, 12))).astype(np.float32)
    c, y = recurrence.forward(gates, np.array([1]), np.array([4]))
    for side, words in ((0, (1, 2, 3, 4)), (1, (4, 3, 2, 1))):
        z, f, o = gates[:, 6 * side : 6 * side + 6].reshape(6, 3, 2).transpose(1, 0, 2)
        state = np.zeros(2)
        for t in words:
            kept = (1 + f[t]) / 2
            state = kept * state + (1 - kept) * z[t]
            np.testing.assert_allclose(c[t, 2 * side : 2 * side + 2], state, atol=1e-6)
            expected = (1 + o[t]) / 2 * state
            np.testing.assert_allclose(y[t, 2 * side : 2 * side + 2], expected, atol=1e-6)
    assert not y[[0, 5]].any()


def test_scores_of_arcs_are_the_formula(parameters: dict[str, np.ndarray]) -> None:
    p = {name: array.astype(np.float32) for name, array in parameters.items()}
    states = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    around = np.concatenate([np.ones((3, 8), np.float32), states, np.ones((2, 8), np.float32)])
    score = network.arc_scores(network.arc_parts(p, around), 4, 5)
    for h in range(6):
        for m in range(1, 6):
            if h == m:
                assert score[h, m] < -1e20
                continue
            between = states[min(h, m) + 1 : max(h, m)].sum(axis=0) @ p["arc.between"]
            distance = p["arc.distance"][network.distance_row(h, m)]
            hidden = states[h] @ p["arc.head"] + states[m] @ p["arc.modifier"]
            expected = np.maximum(hidden + between + distance, 0) @ p["arc.out"]
            expected += (states[h] @ p["pair.head"]) @ (states[m] @ p["pair.modifier"])
            assert score[h, m] == pytest.approx(expected, abs=1e-4)


def test_learning_is_the_same_for_a_seed_and_lowers_the_loss() -> None:
    examples = [example(n, n) for n in (3, 5, 2, 6)] * 3
    vectors = np.zeros((5, 3), np.float32)
    settings = NetworkSettings(layer=8, arc=5, relation=4, pair=3, epochs=6, batch=4, rate=0.01)
    losses: list[float] = []

    def run(seed: int) -> dict:
        return dict(
            learning.learn(
                examples, ROWS, vectors, (3, 4), settings, seed=seed,
                on_epoch=lambda _, loss: losses.append(loss),
            )
        )  # fmt: skip

    one, other, third = run(1), run(1), run(2)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not np.array_equal(one["arc.out"], third["arc.out"])
    assert losses[5] < losses[0]
    assert not one["table.word"][0].any()
    assert np.isfinite(eisner.inside(np.zeros((4, 4)))[2])
