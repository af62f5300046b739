"""Hold a tagger against gold tags: accuracy, calibration, speed."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lpcfg.base.errors import InputError
from lpcfg.kinds.calibration import calibration
from lpcfg.kinds.sentences import sentence_from_tokens
from lpcfg.kinds.tags.chains import Tagged
from lpcfg.kinds.tags.predict import SequenceTagger


@dataclass(frozen=True)
class TagScores:
    """Shares in percent. `unknown_accuracy` is of words that training did not have, None if none.

    `negative` is the share of sentences with p(sentence) < 0, `alone` of those whose words were
    tagged one by one.
    """

    sentences: int
    words: int
    accuracy: float
    unknown_words: int
    unknown_accuracy: float | None
    exact_match: float
    calibration_error: float
    negative: float
    alone: float
    words_per_cpu_second: float
    right: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """Right tags, and words, of each sentence."""

    measure = "tags right"
    shown = (
        ("tags right", "accuracy", 2),
        ("whole sentences", "exact_match", 2),
        ("calibration error", "calibration_error", 4),
        ("words a CPU second", "words_per_cpu_second", 0),
    )

    def as_json(self) -> dict[str, Any]:
        """Return what `lpcfg evaluate --json` prints."""
        figures = asdict(self)
        del figures["right"]
        return figures

    def counts(self) -> list[tuple[float, float]]:
        """Return right tags, and twice the words, of every sentence."""
        return [(right, 2 * words) for right, words in self.right]

    def text(self) -> str:
        """Write the scores as lines."""
        unknown = self.unknown_accuracy
        rows = (
            ("sentences, words", f"{self.sentences}, {self.words}"),
            ("tags right", f"{self.accuracy:.2f} %"),
            ("of unknown words", "-" if unknown is None else f"{unknown:.2f} %"),
            ("whole sentences right", f"{self.exact_match:.2f} %"),
            ("calibration error", f"{self.calibration_error:.4f}"),
            ("words a CPU second", f"{self.words_per_cpu_second:.0f}"),
        )
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {value}" for name, value in rows)


def evaluate(tagger: SequenceTagger, gold: Sequence[Tagged]) -> TagScores:
    """Tag the words of gold sentences, and compare. Seconds are of the CPU."""
    if not gold:
        raise InputError("expected tagged sentences to evaluate on, got none: give some")
    tagger.tag(sentence_from_tokens(gold[0][0]))  # compiled before the clock starts
    started = time.process_time()
    found = [tagger.tag(sentence_from_tokens(words)) for words, _ in gold]
    seconds = time.process_time() - started
    known = tagger.model.lexicon.word_ids
    right = [
        [own == tag for own, tag in zip(one.tags, tags, strict=True)]
        for one, (_, tags) in zip(found, gold, strict=True)
    ]
    flat = [correct for one in right for correct in one]
    unknown = [
        correct
        for one, (words, _) in zip(right, gold, strict=True)
        for correct, word in zip(one, words, strict=True)
        if word not in known
    ]
    stated = [p for one in found for p in one.probabilities]
    return TagScores(
        sentences=len(gold),
        words=len(flat),
        accuracy=_percent(flat),
        unknown_words=len(unknown),
        unknown_accuracy=_percent(unknown) if unknown else None,
        exact_match=_percent([all(one) for one in right]),
        calibration_error=calibration(stated, flat).error,
        negative=_percent([(one.sign or 0) < 0 for one in found]),
        alone=_percent([one.sign == 0 for one in found]),
        words_per_cpu_second=len(flat) / max(seconds, 1e-9),
        right=tuple((sum(one), len(one)) for one in right),
    )


def _percent(true: Sequence[bool]) -> float:
    return 100.0 * sum(true) / len(true)
