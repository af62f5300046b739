"""The protocol of a kind of models: what commands, endpoints and runs ask of every one.

A kind is a folder below `kinds` with one class of this protocol, and one line in `kinds.registry`.
It then has `lpcfg parse` and `lpcfg evaluate`, a group of commands of its own, an endpoint,
batches, jobs, collections in all forms of files, and a place in `lpcfg.load`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from lpcfg.base.errors import InputError
from lpcfg.base.options import Options

if TYPE_CHECKING:  # commands read the options of every kind: little is imported for that
    from pydantic import BaseModel

    from lpcfg.base.cancel import Stop
    from lpcfg.kinds.sentences import Segmenter, Sentence
    from lpcfg.store.versions import Reference, Stored

Json = dict[str, Any]
Column = str | Mapping[str, str]
"""The type of a column, by its name in Arrow; or the members of the records in its lists."""
WARMING = (
    ("Yes",),
    ("The", "cat", "sat", "on", "the", "mat", "."),
    ("The", "cat", "that", "the", "dog", "chased", "sat", "on", "the", "old", "mat", "."),
    (")", "(", ")"),
)
"""A word, a clause, a long sentence, and tokens that no grammar joins."""
Progress = Callable[[str, int, int], None]


class Answer(Protocol):
    """The answer of a model to one sentence.

    `status` is `failed`, with a `reason`, where the model has none.
    """

    @property
    def sentence(self) -> "Sentence": ...

    @property
    def status(self) -> str: ...

    @property
    def reason(self) -> str | None: ...


class Evaluation(Protocol):
    """The scores of a model on gold data.

    `measure` is the name of the main one, and `shown` has a title, a key of `as_json` and a number
    of digits for each score that stands in a comparison of two models.
    """

    @property
    def measure(self) -> str: ...

    @property
    def shown(self) -> Sequence[tuple[str, str, int]]: ...

    def as_json(self) -> Json: ...

    def text(self) -> str:
        """Write the scores as lines for people."""

    def counts(self) -> Sequence[tuple[float, float]]:
        """Return, for each sentence, how much is right, and how much the model and the gold data
        say together: the main measure is 200 times the sum of the first over that of the second.
        """


@dataclass(frozen=True, slots=True)
class NoOptions(Options):
    """The options of a kind that has none."""


@dataclass(frozen=True)
class Published:
    """A model that training has published, with the facts of its manifest.

    `lines` tell people what was learned, and `notes` what was not done as they may expect.
    """

    reference: "Reference"
    facts: Json
    lines: Sequence[str] = ()
    notes: Sequence[str] = ()


P = TypeVar("P")
Opt = TypeVar("Opt", bound=Options)
A = TypeVar("A", bound=Answer)


class Kind(ABC, Generic[P, Opt, A]):
    """One kind of models: predictors P give answers A under options Opt.

    Several threads may use a predictor.

    name        the `kind` in the manifests of its models
    title       its name in messages, as in "expected a dependency model"
    command     the last part of its endpoint, /v1/COMMAND, and its group of commands
    group       the name of this group, if it is another; "" for a kind that has none, because
                `lpcfg train`, `lpcfg parse` and so on are its own
    verb        the command of the group that prints answers
    data        the form of its gold data, as in "files of Penn brackets"
    options     the class of the options of an answer
    evaluating  the class of the options of an evaluation
    training    the class of the options of training; None if `train` is not there
    forms       the forms in which an answer can be written as text, and the ending of a file of
                them ("" where there is none); the first one is the default
    statuses    what the status of an answer can be
    columns     what a row of a collection has of an answer, besides id, document, start, end,
                status, reason and model: names and types of Arrow; or, for a list of records, the
                names and types of their members
    tensors     the outputs of v2 infer besides `answer`
    examples    bodies of requests to its endpoint, for the description of the service
    """

    name: ClassVar[str]
    title: ClassVar[str]
    command: ClassVar[str]
    group: ClassVar[str | None] = None
    verb: ClassVar[str] = "parse"
    data: ClassVar[str] = "gold data"
    options: ClassVar[type[Options]] = NoOptions
    evaluating: ClassVar[type[Options]] = NoOptions
    training: ClassVar[type[Options] | None] = None
    forms: ClassVar[Mapping[str, str]] = {}
    statuses: ClassVar[Sequence[str]] = ("parsed", "failed")
    columns: ClassVar[Mapping[str, Column]] = {}
    tensors: ClassVar[Sequence[str]] = ()
    examples: ClassVar[Sequence[Json]] = (
        {"text": "The cat sat on the mat. It slept."},
        {"sentences": [{"id": "s2", "tokens": ["Cats", "sleep", "."]}]},
    )

    def prepare(self) -> None:
        """Import what `load` needs: it is called while the files of a model are hashed."""

    @abstractmethod
    def load(self, stored: "Stored") -> P:
        """Make the predictor of a stored model. Raise StoreError if the data are not one."""

    def warm(self, predictor: P) -> None:
        """Answer a few sentences, so that nothing is compiled while a request waits."""
        from lpcfg.base.cancel import Stop
        from lpcfg.kinds.sentences import Sentence

        options: Any = self.options()
        for _ in self.predict(predictor, [Sentence(words) for words in WARMING], options, Stop()):
            pass

    @abstractmethod
    def predict(
        self, predictor: P, sentences: "Sequence[Sentence]", options: Opt, stop: "Stop"
    ) -> Iterator[A]:
        """Answer sentences, in order; one without words has failed. Raise InputError for what a
        sentence cannot have.
        """

    @abstractmethod
    def answer(self, found: A) -> Json:
        """Return an answer as JSON: an element of `sentences` in a response."""

    @abstractmethod
    def schema(self) -> "type[BaseModel]":
        """Return the shape of `answer`, for the description of the service."""

    def tensor(self, name: str, answer: Json) -> str:
        """Return one of `tensors` of an answer as JSON."""
        return str(answer[name])

    def segmenter(self, predictor: P) -> "Segmenter":
        """Return what cuts text into the sentences and words that the model knows."""
        from lpcfg.kinds.sentences import ENGLISH

        del predictor
        return ENGLISH

    def tags(self, predictor: P) -> Collection[str]:
        """Return the tags that words may be given; none where the model takes none."""
        del predictor
        return ()

    def check(self, predictor: P, sentence: "Sentence") -> None:
        """Raise InputError if a sentence has what the model cannot use."""

    def row(self, found: A) -> Json:
        """Return what a collection keeps of an answer, by the names in `columns`."""
        answer = self.answer(found)
        return {name: answer[name] for name in self.columns}

    def text(self, found: A, form: str, options: Opt, comments: Sequence[str] = ()) -> str | None:
        """Write an answer in one of `forms`, without the last line break; None: write nothing."""
        raise InputError(f"expected JSON as the form of a {self.title}, got {form!r}: ask for json")

    def gold(self, files: Sequence[str], options: Any) -> Any:
        """Read gold data, which several models may be evaluated on. By default, only their files
        are named.
        """
        del options
        return files

    def evaluate(
        self, predictor: P, gold: Any, options: Any, *, workers: int, progress: Progress
    ) -> Evaluation:
        """Compare what the model answers to the words of gold data with the data."""
        raise InputError(
            f"expected a kind of model that has scores, got a {self.title}: name another model"
        )

    def train(
        self,
        files: Sequence[str],
        options: Any,
        *,
        store: str,
        name: str,
        dev: Sequence[str],
        licence: str,
        workers: int,
        progress: Progress,
    ) -> Published:
        """Learn a model from gold data, evaluate it on each file of `dev`, and publish it."""
        raise InputError(
            f"expected a kind of model with a `train`, got {self.name}: train it from Python"
        )

    def scores(self, facts: Mapping[str, Any]) -> Mapping[str, Json]:
        """Return what training found on dev data, by the names of the data."""
        return facts.get("dev") or {}

    def facts(self, predictor: P) -> Json:
        """Return what GET /v1/models tells of a model besides the facts of its manifest."""
        del predictor
        return {}


@dataclass(frozen=True, eq=False)
class Loaded(Generic[P, Opt, A]):
    """A stored model that is ready to answer, with its kind and the facts of its manifest."""

    kind: Kind[P, Opt, A]
    predictor: P
    reference: "Reference"
    facts: Mapping[str, Any]

    def predict(
        self, sentences: "Sequence[Sentence]", options: Opt, stop: "Stop | None" = None
    ) -> Iterator[A]:
        """Answer sentences, in order."""
        from lpcfg.base.cancel import Stop

        return self.kind.predict(self.predictor, sentences, options, stop or Stop())

    @property
    def segmenter(self) -> "Segmenter":
        """The segmenter of the model."""
        return self.kind.segmenter(self.predictor)
