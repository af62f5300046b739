"""`lpcfg dep` end to end, and arcs out of `lpcfg parse`."""

import json
from pathlib import Path

import pytest

from lpcfg.cli import main
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies.arcs import Arcs
from tests.kinds.dependencies import small

TRAIN = ("--epochs", "3", "--members", "1", "--workers", "1")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with the model `dep`, made by the command."""
    folder = tmp_path_factory.mktemp("dep")
    trees, dev = folder / "train.conllu", folder / "dev.conllu"
    trees.write_text(small.as_conllu(small.sentences(150, 0)), encoding="utf-8")
    dev.write_text(small.as_conllu(small.sentences(20, 1)), encoding="utf-8")
    command = ["dep", "train", str(trees), "--name", "dep", "--dev", str(dev), *TRAIN]
    assert main([*command, "--store", str(folder / "store")]) == 0
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_text_becomes_conllu_that_can_be_read(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The dog saw a cat. A cat found the house.", encoding="utf-8")
    code, out, err = run(capsys, "dep", "parse", "dep", str(text), "--store", str(store / "store"))
    assert (code, err) == (0, "")
    first, second = conllu.read_string(out)
    assert first.text == "The dog saw a cat."
    assert first.arcs.heads == (2, 3, 0, 5, 3, 3)
    assert second.arcs.labels[-1] == "punct"
    assert first.words[0][-1].startswith("Probability=")


def test_tokens_become_json_with_probabilities(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("the dog saw a cat .\n\n", encoding="utf-8")
    where = ("--store", str(store / "store"))
    code, out, err = run(
        capsys, "dep", "parse", "dep", str(tokens), "--input", "tokens", "--json", *where
    )
    assert code == 0
    parsed, failed = map(json.loads, out.splitlines())
    assert parsed["status"] == "parsed"
    assert 0.5 < parsed["tokens"][2]["probability"] <= parsed["tokens"][2]["head_probability"] <= 1
    assert (failed["status"], failed["reason"]) == ("failed", "the sentence has no words")
    assert err == f"lpcfg: sentence 2 of {tokens}: failed: the sentence has no words\n"


def test_conllu_that_is_given_keeps_all_but_heads_and_tags(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--store", str(store / "store"))
    dev = str(store / "dev.conllu")
    code, out, _ = run(capsys, "dep", "parse", "dep", dev, "--input", "conllu", *where)
    assert code == 0
    given, made = list(conllu.read(dev)), list(conllu.read_string(out))
    assert [one.comments for one in made] == [one.comments for one in given]
    assert [one.arcs.words for one in made] == [one.arcs.words for one in given]


def test_conllu_that_is_given_keeps_identifiers_lemmas_and_multiword_tokens(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.conllu"
    file.write_text(
        "# sent_id = a-1\n# text = Dogs don't sleep\n1\tDogs\tdog\t_\t_\t_\t_\t_\t_\t_\n"
        "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tdo\tdo\t_\t_\tMood=Ind\t_\t_\t_\t_\n"
        "3\tn't\tnot\t_\t_\t_\t_\t_\t_\t_\n4\tsleep\tsleep\t_\t_\t_\t_\t_\t_\t_\n\n",
        encoding="utf-8",
    )
    where = ("--input", "conllu", "--store", str(store / "store"))
    code, out, _ = run(capsys, "dep", "parse", "dep", str(file), *where)
    assert code == 0
    ((given,), (made,)) = conllu.read(file), conllu.read_string(out)
    assert made.comments == given.comments
    kept = (conllu.ID, conllu.FORM, 2, 5, conllu.MISC)  # lemmas and features are 2 and 5
    assert [[row[k] for k in kept] for row in made.rows] == [
        [row[k] for k in kept] for row in given.rows
    ]
    assert made.has_heads


def test_evaluation_and_tree_probabilities_are_numbers(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, dev = ("--store", str(store / "store")), str(store / "dev.conllu")
    code, out, _ = run(capsys, "dep", "evaluate", "dep", dev, "--json", *where)
    scores = json.loads(out)
    assert code == 0
    assert scores["uas"] > 90
    assert scores["sentences"] == 20
    assert 0 <= scores["calibration_error"] < 0.3
    code, out, _ = run(capsys, "dep", "tree-probability", "dep", dev, "--json", *where)
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, len(lines)) == (0, 20)
    assert all(line["conditional_log_probability"] <= 0 for line in lines)
    code, out, _ = run(capsys, "dep", "evaluate", "dep", dev, *where)
    assert "without punctuation: UAS" in out


@pytest.mark.parametrize("command", ["evaluate", "tree-probability"])
def test_bad_files_end_with_their_line(
    command: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.conllu"
    row = "1\ta\t_\t_\t_\t_\t{}\tdep\t_\t_\n2\tb\t_\t_\t_\t_\t{}\tdep\t_\t_\n"
    where = ("--store", str(store / "store"))
    for text, expected in (
        ("", "bad.conllu:1:1: expected sentences in CoNLL-U, got none"),
        (row.format(2, 1), "bad.conllu:1:13: expected heads that lead to the root"),
        (row.format(0, 0), "bad.conllu:2:13: expected one word with head 0"),
        ("1\ta\n", "bad.conllu:1:1: expected 10 fields"),
    ):
        bad.write_text(text, encoding="utf-8")
        code, out, err = run(capsys, "dep", command, "dep", str(bad), *where)
        assert (code, out) == (1, "")
        assert expected in err


def test_crossing_arcs_and_single_words_are_evaluated(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crossing = Arcs(("a", "b", "c", "d"), (0, 4, 1, 1), ("root", *["dep"] * 3), ("X|X",) * 4)
    single = Arcs(("Go",), (0,), ("root",), ("VERB|VB",))
    assert not crossing.is_projective
    odd = tmp_path / "odd.conllu"
    odd.write_text(small.as_conllu([crossing, single]), encoding="utf-8")
    where = ("--json", "--store", str(store / "store"))
    code, out, _ = run(capsys, "dep", "evaluate", "dep", str(odd), *where)
    scores = json.loads(out)
    assert (code, scores["sentences"], scores["words"]) == (0, 2, 5)
    assert 20 <= scores["uas"] < 100  # the root of one word is right, no crossing tree is found
    code, out, _ = run(capsys, "dep", "tree-probability", "dep", str(odd), *where)
    told = [json.loads(line)["conditional_log_probability"] for line in out.splitlines()]
    assert told == [None, pytest.approx(0.0, abs=1e-9)]


def test_crossing_arcs_to_learn_from_are_lifted_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crossing = Arcs(("a", "b", "c", "d"), (0, 4, 1, 1), ("root", *["dep"] * 3), ("X|X",) * 4)
    file = tmp_path / "train.conllu"
    file.write_text(small.as_conllu([*small.sentences(8, 0), crossing]), encoding="utf-8")
    options = ("--epochs", "1", "--members", "1", "--store", str(tmp_path / "store"))
    code, _, err = run(capsys, "dep", "train", str(file), "--name", "odd", *options)
    assert code == 0
    assert "1 of 9 trees were not projective: 1 arcs lifted" in err


def test_parse_writes_arcs_of_a_constituency_tree_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
    where = ("--store", str(tmp_path / "store"))
    assert main(["train", str(trees), "--name", "small", "--estimator", "counts", *where]) == 0
    capsys.readouterr()
    text = tmp_path / "text.txt"
    text.write_text("The dog saw a cat.", encoding="utf-8")
    code, out, _ = run(capsys, "parse", "small", str(text), "--output", "conllu", *where)
    assert code == 0
    [sentence] = conllu.read_string(out)
    assert any("head rules" in comment for comment in sentence.comments)
    assert sentence.text == "The dog saw a cat."
    assert sentence.arcs.labels.count("root") == 1


def test_expanded_trees_are_learned_parsed_and_collapsed_again(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, train, dev = ("--store", str(tmp_path / "store")), tmp_path / "a.mrg", tmp_path / "b.mrg"
    for name, path in (("train", train), ("dev", dev)):
        code, out, err = run(capsys, "dep", "expand", str(store / f"{name}.conllu"))
        assert (code, err) == (0, "")
        path.write_text(out, encoding="utf-8")
    code, out, _ = run(capsys, "dep", "collapse", str(dev))
    gold = [one.arcs for one in conllu.read(store / "dev.conllu")]
    assert code == 0
    assert [one.arcs.heads for one in conllu.read_string(out)] == [one.heads for one in gold]
    learn = ["train", str(train), "--name", "expanded", "--estimator", "counts"]
    assert main([*learn, "--rescore", "none", *where]) == 0
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("".join(" ".join(one.words) + "\n" for one in gold), encoding="utf-8")
    capsys.readouterr()
    _, out, _ = run(capsys, "parse", "expanded", str(tokens), "--input", "tokens", *where)
    dev.write_text(out, encoding="utf-8")
    _, out, _ = run(capsys, "dep", "collapse", str(dev))
    found = [one.arcs for one in conllu.read_string(out)]
    assert [one.words for one in found] == [one.words for one in gold]
    right = [
        a == b
        for one, two in zip(gold, found, strict=True)
        for a, b in zip(one.heads, two.heads, strict=True)
    ]
    assert sum(right) > 0.95 * len(right)


def test_trees_that_are_no_expansions_are_told_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = tmp_path / "trees.mrg"
    trees.write_text("(S (N a) (V b))\n(V/L (N a) (V b))\n", encoding="utf-8")
    code, out, err = run(capsys, "dep", "collapse", str(trees))
    assert code == 0
    assert "tree 1: expected two children under a label that ends in /R or /L" in err
    [only] = conllu.read_string(out)
    assert only.arcs.heads == (2, 0)


def test_crossing_arcs_are_lifted_before_expansion_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ((1, "a", 3), (2, "b", 0), (3, "c", 2), (4, "d", 1))
    crossing = tmp_path / "crossing.conllu"
    crossing.write_text(
        "".join(f"{m}\t{w}\t_\tX\t_\t_\t{head}\tdep\t_\t_\n" for m, w, head in rows) + "\n",
        encoding="utf-8",
    )
    code, out, err = run(capsys, "dep", "expand", str(crossing))
    assert code == 0
    assert err == "lpcfg: trees that were not projective and have been lifted: 1\n"
    assert out.count("(") == 7
