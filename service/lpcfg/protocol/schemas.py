"""Schemas of requests and answers. The service documents them, and the client reads answers with
them.

Offsets are half-open. Offsets of tokens and sentences count code points; offsets of constituents
count tokens, with `start_char` and `end_char` beside them. Probabilities are in [0, 1]; logs are
natural.
"""

from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

Word = Annotated[str, Field(pattern=r"^[^ \t\n\r\f\v]+( [^ \t\n\r\f\v]+)*$")]
"""A token that brackets can hold: no white space except single blanks inside."""
Text = Annotated[str, Field(examples=["The cat sat on the mat."])]


MOST_FAULTS = 16
"""The most faults of a request that an answer lists."""
MOST_SPANS = 1000
"""The most spans or constraints in a request: a sentence of 200 tokens has 20,100 spans."""
WRONG = "wrong"
"""The type of a validation error that carries its own expectation and cure, and perhaps `got`."""


def _wrong(expected: str, cure: str, got: str = "") -> PydanticCustomError:
    told = "expected {expected}, got {got}: {cure}" if got else "expected {expected}: {cure}"
    return PydanticCustomError(WRONG, told, {"expected": expected, "cure": cure, "got": got})


def counted(number: int, what: str) -> str:
    """Return the number with its noun, in the singular or plural."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _with_few_others(value: dict[Any, Any], model: type[BaseModel]) -> dict[Any, Any]:
    """Leave out all but the first members that nobody knows: each would be an error by itself."""
    if len(value) <= MOST_FAULTS:
        return value
    others = [name for name in value if name not in model.model_fields]
    left_out = frozenset(others[MOST_FAULTS:])
    return {name: one for name, one in value.items() if name not in left_out}


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    like: ClassVar[str]
    """An example of the object, for error messages."""

    @model_validator(mode="before")
    @classmethod
    def _is_object(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return _with_few_others(value, cls)
        if isinstance(value, cls):
            return value
        raise _wrong(cls.like, "send that")


class _Answer(BaseModel):
    """An answer. Answers may gain members, which clients must ignore."""


S = TypeVar("S", bound=BaseModel)
"""The answer to one sentence."""


# Requests -----------------------------------------------------------------------------------------


class Span(_Request):
    """Tokens [start, end)."""

    like = 'an object like {"start": 0, "end": 2}'

    start: int = Field(ge=0)
    end: int = Field(ge=1)

    @model_validator(mode="after")
    def _has_tokens(self) -> Self:
        if self.start >= self.end:
            got = f"start {self.start} and end {self.end}"
            raise _wrong("start before end", "`end` is the first token after the span", got)
        return self


class ConstraintInput(Span):
    """A constituent that the analysis must have: tokens [start, end), with this label if given."""

    like = 'an object like {"start": 0, "end": 2, "label": "NP"}'

    label: str | None = Field(
        None, min_length=1, description="one of the model's `labels` (see /v1/models)"
    )
    forbid: bool = Field(False, description="true: the analysis must not have this constituent")


def _id(value: Any) -> Any:
    if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
        return value
    raise _wrong("a string or a whole number", "send one of them, or leave `id` out")


class TokensInput(_Request):
    """A sentence as the caller's own tokens, with tags and constraints the caller knows."""

    like = 'a sentence as a string, or an object like {"tokens": ["Cats", "sleep", "."]}'

    tokens: list[Word] = Field(fail_fast=True, examples=[["Cats", "sleep", "."]])
    tags: list[str | None] | None = Field(
        None,
        fail_fast=True,
        description="for each token null or one of the model's `tags` (see /v1/models)",
        examples=[["NNS", None, "."]],
    )
    id: Annotated[int | str | None, BeforeValidator(_id)] = None
    constraints: list[ConstraintInput] = Field(
        default_factory=list,  # Pydantic would copy a default with `copy.deepcopy`: 3 µs
        fail_fast=True,
        max_length=MOST_SPANS,
        json_schema_extra={"default": []},
    )

    @model_validator(mode="before")
    @classmethod
    def _is_not_text(cls, value: Any) -> Any:
        if isinstance(value, dict) and "text" in value and "tokens" not in value:
            cure = "send one sentence as the string alone, or several as the `text` of /v1/parse"
            raise _wrong(cls.like, cure, "an object with `text`")
        return value

    @field_validator("tags")
    @classmethod
    def _is_aligned(
        cls, tags: list[str | None] | None, info: ValidationInfo
    ) -> list[str | None] | None:
        tokens = info.data.get("tokens")
        if tags is not None and tokens is not None and len(tags) != len(tokens):
            got = f"{counted(len(tags), 'tag')} for {counted(len(tokens), 'token')}"
            raise _wrong("a tag or null for each token", "send as many", got)
        return tags


ALTERNATIVES = ("(text)", "(tokens)")
"""Names that validation errors use for the two ways to give a sentence. No member has them."""


def _kind(value: Any) -> str:
    return ALTERNATIVES[not isinstance(value, str)]


SentenceInput = Annotated[
    Annotated[Text, Tag(ALTERNATIVES[0])] | Annotated[TokensInput, Tag(ALTERNATIVES[1])],
    Discriminator(_kind),
]


class SentencesRequest(_Request):
    """Text or sentences, and the model that answers."""

    like = 'an object like {"text": "The cat sat."}'

    text: Text | None = Field(None, description="raw text, to be split into sentences and tokens")
    sentences: list[SentenceInput] | None = Field(
        None, fail_fast=True, description="one sentence each, as a string or as tokens"
    )
    model: str | None = Field(
        None, min_length=1, description="NAME or NAME@VERSION of a model that is served"
    )

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.text is None) is (self.sentences is None):
            got = "neither" if self.text is None else "both"
            raise _wrong("either `text` or `sentences`", "send one of them", got)
        return self


Rescore = Annotated[
    bool, Field(description="false leaves out the model's rescoring layer, where it has one")
]


class MarginalsRequest(SentencesRequest):
    """One sentence: a `text` with words, read as one sentence, or `sentences` with one entry."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "The cat sat on the mat.", "threshold": 0.05},
                {
                    "sentences": [{"tokens": ["Cats", "sleep", "."]}],
                    "spans": [{"start": 0, "end": 2}],
                },
            ]
        }
    )

    spans: list[Span] | None = Field(
        None, fail_fast=True, max_length=MOST_SPANS, description="answer these spans only"
    )
    threshold: float = Field(
        0.01, ge=0, le=1, allow_inf_nan=False, description="leave out less probable labels"
    )
    raw: bool = Field(False, description="use the grammar's own symbols, without calibration")
    rescore: Rescore = True

    @field_validator("sentences")
    @classmethod
    def _is_one(cls, sentences: list[SentenceInput] | None) -> list[SentenceInput] | None:
        if sentences is not None and len(sentences) != 1:
            raise _wrong("just one sentence", "ask for each by itself", str(len(sentences)))
        return sentences


class TreesRequest(_Request):
    """Trees as Penn brackets, to compute their probabilities."""

    like = 'an object like {"trees": ["(S (NP (NNS Cats)) (VP (VBP sleep)))"]}'

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"trees": ["(S (NP (NNS Cats)) (VP (VBP sleep)) (. .))", "(S (NP"]}]
        }
    )

    trees: list[str] = Field(fail_fast=True)
    rescore: Rescore = True
    model: str | None = Field(
        None, min_length=1, description="NAME or NAME@VERSION of a model that is served"
    )


class PairInput(_Request):
    """Two sentences to compare."""

    like = 'an object like {"first": "A man plays the flute.", "second": "Someone plays."}'

    first: Text
    second: Text


class SimilarityRequest(_Request):
    """Pairs of sentences whose similarity is asked for."""

    like = 'an object like {"pairs": [{"first": "Dogs bark.", "second": "A dog barks."}]}'

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"pairs": [{"first": "A man plays the flute.", "second": "A man is playing."}]}
            ]
        }
    )

    pairs: list[PairInput] = Field(fail_fast=True)


class TensorInput(BaseModel):
    """A tensor of a request. Without `data`, its strings follow the JSON in binary form."""

    model_config = ConfigDict(strict=True)

    name: str = Field(examples=["text"])
    datatype: str = Field(examples=["BYTES"])
    shape: list[int] = Field(examples=[[2]])
    data: list[Any] | None = Field(None, examples=[["The cat sat.", "It slept."]])


class TensorOutput(BaseModel):
    """A tensor that is asked for."""

    name: str = Field(examples=["tree"])


class InferRequest(BaseModel):
    """Sentences as a tensor (Open Inference Protocol, version 2)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "1",
                    "inputs": [
                        {
                            "name": "text",
                            "datatype": "BYTES",
                            "shape": [2],
                            "data": ["The cat sat.", "It slept."],
                        }
                    ],
                }
            ]
        }
    )

    id: str | None = None
    inputs: list[TensorInput] = Field(fail_fast=True, max_length=16)
    outputs: list[TensorOutput] | None = Field(None, fail_fast=True, max_length=16)


class BatchParameters(BaseModel):
    """The model that answers the lines of a batch; its kind's options are added."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(
        None, min_length=1, description="NAME or NAME@VERSION of a model that is served"
    )


# Answers ------------------------------------------------------------------------------------------


Offset = Annotated[
    int | None, Field(description="in code points of the text sent; null for given tokens")
]


class ModelVersion(_Answer):
    """The model that answered. `hash` is the SHA-256 of its manifest."""

    name: str = Field(examples=["en"])
    version: int = Field(examples=[1])
    hash: str = Field(examples=["5f0c1d2e" * 8])


class ModelFacts(ModelVersion):
    """A model that is served. Which members it has besides its name depends on its kind."""

    model_config = ConfigDict(extra="allow")

    kind: str = Field(description="the kind of model", examples=["constituency"])
    default: bool = Field(
        description="true if it answers requests that name no model, at its kind's endpoint"
    )
    symbols: int | None = Field(None, examples=[1021])
    rules: int | None = Field(None, examples=[14873])
    states: int | None = Field(None, description="most latent states of a symbol", examples=[32])
    labels: list[str] | None = Field(
        None,
        description="labels of constituents, as constraints may name them",
        examples=[["NP", "S", "VP"]],
    )
    tags: list[str] | None = Field(
        None, description="tags of words", examples=[["DT", "NN", "VBZ"]]
    )
    rescoring: bool | None = Field(
        None, description="true if it has a layer that `rescore` leaves out"
    )


class ModelDetails(ModelFacts):
    """A model that is served, with the facts of its training."""

    facts: dict[str, Any] = Field(description="configuration, sizes, scores, as published")


class Models(_Answer):
    """All models that are served."""

    models: list[ModelFacts]


class Answers(_Answer, Generic[S]):
    """One answer for each sentence, in order."""

    model: ModelVersion
    sentences: list[S]


class TokenAnswer(_Answer):
    """A token, its place in the text (if there is one) and its tag in the best tree."""

    text: str = Field(examples=["cat"])
    start: Offset = Field(examples=[4])
    end: Offset = Field(examples=[7])
    tag: str | None = Field(examples=["NN"])
    probability: float | None = Field(examples=[0.993])


class ConstituentAnswer(_Answer):
    """A labelled span of a tree and how likely it is to be right."""

    label: str = Field(examples=["NP"])
    start: int = Field(description="in tokens", examples=[0])
    end: int = Field(description="in tokens", examples=[2])
    start_char: Offset = Field(examples=[0])
    end_char: Offset = Field(examples=[7])
    probability: float | None = Field(examples=[0.978])


class ParseAnswer(_Answer):
    """One tree with its score under the objective, log p(tree) and p(tree | sentence)."""

    tree: str = Field(examples=["(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))"])
    score: float
    log_probability: float | None
    sign: int | None = Field(description="of p(tree): spectral estimates may be negative")
    probability: float | None = Field(
        description="p(tree | sentence); null where the estimates of p(tree) and p(sentence) make "
        "no probability"
    )
    constituents: list[ConstituentAnswer]


class SentenceAnswer(_Answer):
    """The answer to one sentence. A partial or failed one has a `reason`."""

    id: int | str | None
    status: Literal["parsed", "partial", "failed"]
    reason: str | None
    text: str | None
    start: Offset
    end: Offset
    tokens: list[TokenAnswer]
    log_probability: float | None
    unusual: float | None = Field(
        description="how many training sentences of about its length surprise the model less, in "
        "percent: above 99, it may be no English, or no sentence; null where the model cannot tell"
    )
    sign: int | None
    parses: list[ParseAnswer]


class ParseResponse(Answers[SentenceAnswer]):
    """One answer for each sentence, in order."""


class DependencyToken(_Answer):
    """A token with its head and relation: `probability` is of both, `head_probability` of one."""

    text: str = Field(examples=["cat"])
    start: Offset = Field(examples=[4])
    end: Offset = Field(examples=[7])
    tag: str = Field(description="UPOS of Universal Dependencies", examples=["NOUN"])
    xpos: str | None = Field(description="Penn tag", examples=["NN"])
    tag_probability: float = Field(examples=[0.993])
    head: int = Field(ge=0, description="number of the head, from 1; 0: the root", examples=[3])
    relation: str = Field(examples=["nsubj"])
    head_probability: float = Field(examples=[0.98])
    probability: float = Field(examples=[0.97])


class DependencySentence(_Answer):
    """The dependency tree of one sentence. A failed one has a `reason`."""

    id: int | str | None
    status: Literal["parsed", "failed"]
    reason: str | None
    text: str | None
    tokens: list[DependencyToken]
    log_probability: float | None = Field(description="log p(tree | sentence)")


class DependenciesResponse(Answers[DependencySentence]):
    """One answer for each sentence, in order."""


class TaggedToken(_Answer):
    """A token with its tag and the tag's probability."""

    text: str = Field(examples=["cat"])
    start: Offset = Field(examples=[4])
    end: Offset = Field(examples=[7])
    tag: str = Field(examples=["NN"])
    probability: float = Field(examples=[0.993])


class TaggedSentence(_Answer):
    """The tags of one sentence. A failed one has a `reason`."""

    id: int | str | None
    status: Literal["tagged", "failed"]
    reason: str | None
    text: str | None
    tokens: list[TaggedToken]
    log_probability: float | None = Field(
        description="log p(sentence); null where each word was tagged by itself"
    )
    sign: int | None = Field(examples=[1])


class TagResponse(Answers[TaggedSentence]):
    """One answer for each sentence, in order."""


class SpanAnswer(_Answer):
    """A label over tokens [start, end): its posterior, and μ as sign and log of its magnitude."""

    label: str = Field(examples=["NP"])
    start: int = Field(examples=[0])
    end: int = Field(examples=[2])
    probability: float = Field(examples=[0.978])
    sign: int = Field(examples=[1])
    log_magnitude: float | None = Field(examples=[-31.4], description="null where μ is zero")


class CellAnswer(_Answer):
    """Tokens [start, end) and the expected number of labels over them.

    A label that stands over them twice in a tree, as in (S (S …)), counts once.
    """

    start: int = Field(examples=[0])
    end: int = Field(examples=[2])
    expected: float = Field(examples=[1.02])


class PlainToken(_Answer):
    """A token and its place in the text, if there is one."""

    text: str = Field(examples=["cat"])
    start: Offset = Field(examples=[4])
    end: Offset = Field(examples=[7])


class MarginalsResponse(_Answer):
    """Labelled spans of one sentence with their posteriors."""

    model: ModelVersion
    id: int | str | None
    status: Literal["parsed", "partial", "failed"]
    reason: str | None
    tokens: list[PlainToken]
    log_probability: float | None
    sign: int | None
    clipped_mass: float = Field(
        description="how far the signed posteriors μ / p(x) lie outside of [0, 1], all together"
    )
    spans: list[SpanAnswer]
    cells: list[CellAnswer]


class PlainSentence(_Answer):
    """The tokens of a sentence."""

    tokens: list[PlainToken]


class AlignmentAnswer(_Answer):
    """A token of each sentence that is the other's most similar word."""

    first: int = Field(description="counts tokens of the first sentence from 0", examples=[1])
    second: int = Field(description="counts tokens of the second sentence", examples=[1])
    similarity: float = Field(description="1 for a word with itself", examples=[0.81])


class PairAnswer(_Answer):
    """How similar two sentences are, on the scale, and which of their words are."""

    score: float = Field(examples=[3.8])
    first: PlainSentence
    second: PlainSentence
    alignments: list[AlignmentAnswer]


class SimilarityResponse(_Answer):
    """One answer for each pair, in order."""

    scale: list[float] = Field(description="lowest and highest score", examples=[[0.0, 5.0]])
    pairs: list[PairAnswer]


class Fault(_Answer):
    """One of several faults in a request, and its place."""

    detail: str = Field(examples=['expected a whole number, got "three": send digits alone'])
    at: str = Field(description="JSON pointer into the request", examples=["/k"])


class Problem(_Answer):
    """The answer to every failed request (RFC 9457, application/problem+json)."""

    type: str = Field(description="the kind of problem", examples=["/docs#problem-limit"])
    title: str = Field(examples=["A limit of this service is exceeded"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["expected at most 200 tokens in a sentence, got 412: split it"])
    at: str | None = Field(
        None,
        description="JSON pointer into the request, or into the line of a batch; "
        "`#query/…` for a parameter",
        examples=["/sentences/0"],
    )
    limit: int | None = Field(None, description="the limit that was exceeded", examples=[200])
    value: int | None = Field(None, description="what came instead", examples=[412])
    line: int | None = Field(None, description="line of a text, from 1", examples=[None])
    column: int | None = Field(None, description="column of that line, from 1", examples=[None])
    errors: list[Fault] | None = Field(None, description="all faults, if there are several")
    error: str | None = Field(
        None, description="the detail again, at the paths of the Open Inference Protocol"
    )


class TreeAnswer(_Answer):
    """log p(tree), log p(sentence) and log p(tree | sentence), or the reason why there are none.

    For a tree that the grammar cannot build, sign is 0, there is no log, and `reason` says what is
    missing. Faulty brackets have a `problem`.
    """

    log_probability: float | None
    sign: int | None
    sentence_log_probability: float | None
    conditional_log_probability: float | None
    reason: str | None
    tree: str | None = Field(
        description="the tree whose probability this is: without traces, function tags and wrapper",
        examples=["(S (NP (NNS Cats)) (VP (VBP sleep)) (. .))"],
    )
    missing: list[int] | None = Field(
        description="nodes of `tree`, in pre-order from 0, whose rule or word the grammar lacks",
        examples=[[]],
    )
    problem: Problem | None


class TreesResponse(_Answer):
    """One answer for each tree, in order."""

    model: ModelVersion
    trees: list[TreeAnswer]


class AnswerLine(_Answer, Generic[S]):
    """The answer to one line of a batch: a sentence, or a problem."""

    line: int = Field(description="number of the line answered, from 1", examples=[1])
    model: ModelVersion
    sentence: S | None = None
    problem: Problem | None = None


class BatchLine(AnswerLine[SentenceAnswer]):
    """The answer to one line of a batch: a sentence, or a problem."""


class DependencyBatchLine(AnswerLine[DependencySentence]):
    """The answer to one line of a batch: a sentence's dependency tree, or a problem."""


class JobAnswer(_Answer):
    """A job, and how far it is."""

    id: str = Field(examples=["9f86d081884c7d659a2feaa0c55ad015"])
    status: Literal["waiting", "running", "done", "failed"]
    lines: int = Field(description="lines of the job", examples=[2])
    answered: int = Field(description="lines that have an answer", examples=[2])
    problems: int = Field(description="answers that are problems", examples=[0])
    created: str = Field(description="UTC", examples=["2026-11-19T02:00:00Z"])
    expires: str = Field(
        description="when the job and its answers are removed", examples=["2026-11-20T02:00:00Z"]
    )
    problem: Problem | None = Field(None, description="why the job was set aside, if it was")


class TensorMetadata(_Answer):
    """The name, type and shape of a tensor; -1 is any size."""

    name: str = Field(examples=["text"])
    datatype: str = Field(examples=["BYTES"])
    shape: list[int] = Field(examples=[[-1]])


class OneTensor(TensorMetadata):
    """A tensor of strings."""

    data: list[str]


class ServerMetadata(_Answer):
    """The name and version of the server."""

    name: str = Field(examples=["lpcfg"])
    version: str = Field(examples=["0.2.0"])
    extensions: list[str]


class TensorModel(_Answer):
    """The tensors of a model (Open Inference Protocol, version 2)."""

    name: str = Field(examples=["en"])
    versions: list[str] = Field(examples=[["1"]])
    platform: str = Field(examples=["lpcfg"])
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class InferResponse(_Answer):
    """Trees as tensors."""

    model_name: str = Field(examples=["en"])
    model_version: str = Field(examples=["1"])
    id: str | None = None
    outputs: list[OneTensor]


class Live(_Answer):
    """The process runs."""

    live: Literal[True]


class Ready(_Answer):
    """Every model is verified and warm."""

    ready: Literal[True]


class ModelReady(_Answer):
    """The model is verified and warm."""

    name: str = Field(examples=["en"])
    ready: Literal[True]
