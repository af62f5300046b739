"""Take the sure trees out of the output of `lpcfg parse --out DIR`, to learn from them.

A parser's own trees teach it words and constructions that gold trees lack, and its own mistakes.
The lowest probability of a tree's constituents tells the one from the other.
"""

import io
import json
from collections.abc import Iterator, Sequence

from lpcfg.base.errors import TrainingError
from lpcfg.text.files import files, lines, name_of


def sure_trees(folders: Sequence[str], confidence: float) -> io.StringIO:
    """Choose the trees whose every constituent is probable.

    Args:
        folders: which `lpcfg parse --out` wrote.
        confidence: the lowest probability that a constituent may have.

    Returns:
        Penn brackets, a tree a line, in the order of the files' names.

    Raises:
        TrainingError: if there are none, or a folder has other files.
    """
    if not 0 <= confidence <= 1:
        raise TrainingError(
            f"expected a confidence from 0 to 1, got {confidence}: give one, .9 say"
        )
    text, seen = io.StringIO(), 0
    for folder in folders:
        for tree, probability in _rows(folder):
            seen += 1
            if probability is not None and probability >= confidence:
                text.write(f"{tree}\n")
    if not text.tell():
        raise TrainingError(
            f"expected trees of confidence {confidence} in {', '.join(folders)}, got none of "
            f"{seen}: lower the confidence, or parse more text"
        )
    text.seek(0)
    return text


def _rows(folder: str) -> Iterator[tuple[str, float | None]]:
    """Yield the trees of a folder's JSON lines that span their sentences, with probabilities."""
    outputs = [file for file in files(f"{folder}/trees") if str(file).endswith(".jsonl")]
    if not outputs:
        raise TrainingError(
            f"expected the output of `lpcfg parse --out {folder} --output json`, found no JSON "
            "lines: parse with that output"
        )
    for file in outputs:
        for number, line in enumerate(lines(file), start=1):
            try:
                row = json.loads(line)
                if row["status"] == "parsed":
                    yield row["tree"], row["lowest_probability"]
            except (ValueError, KeyError, TypeError) as error:
                raise TrainingError(
                    f"{name_of(file)}:{number}: expected a row that `lpcfg parse --out` wrote, got "
                    f"another one ({error!r}): give such a folder"
                ) from error
