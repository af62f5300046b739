"""What goes over the wire, both ways. The service documents it, the client reads answers by it.

Offsets are half-open: of tokens and sentences in code points, of constituents in tokens, with
`start_char` and `end_char` beside them. Probabilities are in [0, 1], logs natural.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

Objective = Literal["max-rule", "max-marginal", "max-product"]
Word = Annotated[str, Field(pattern=r"^[^ \t\n\r\f\v]+( [^ \t\n\r\f\v]+)*$")]
"""What brackets can hold: no white space but single blanks inside."""
Text = Annotated[str, Field(examples=["The cat sat on the mat."])]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Answer(BaseModel):
    """Answers may gain members; clients must not mind them."""


# Requests -----------------------------------------------------------------------------------------


class ConstraintInput(_Request):
    """The analysis must have a constituent over tokens [start, end), with this label if given."""

    start: int = Field(ge=0)
    end: int = Field(ge=1)
    label: str | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _has_tokens(self) -> Self:
        if self.start >= self.end:
            raise ValueError(f"start before end, got start {self.start} and end {self.end}")
        return self


class TokensInput(_Request):
    """A sentence as the caller's own tokens, with what the caller knows of them."""

    tokens: list[Word] = Field(fail_fast=True, examples=[["Cats", "sleep", "."]])
    tags: list[str | None] | None = Field(None, fail_fast=True, examples=[["NNS", None, "."]])
    id: int | str | None = None
    constraints: list[ConstraintInput] = []

    @model_validator(mode="after")
    def _is_aligned(self) -> Self:
        if self.tags is not None and len(self.tags) != len(self.tokens):
            raise ValueError(
                f"one tag or null a token, got {len(self.tokens)} tokens and {len(self.tags)} tags"
            )
        return self


ALTERNATIVES = ("(text)", "(tokens)", "int", "str")
"""What validation errors call the ways to give a sentence or an id; no member has such a name."""


def _kind(value: Any) -> str:
    return ALTERNATIVES[not isinstance(value, str)]


SentenceInput = Annotated[
    Annotated[Text, Tag(ALTERNATIVES[0])] | Annotated[TokensInput, Tag(ALTERNATIVES[1])],
    Discriminator(_kind),
]


class _Sentences(_Request):
    text: Text | None = Field(None, description="raw text: sentences and tokens are found in it")
    sentences: list[SentenceInput] | None = Field(
        None, description="one sentence each, as a string or as tokens"
    )
    model: str | None = Field(
        None, min_length=1, description="NAME or NAME@VERSION of a model that is served"
    )

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.text is None) is (self.sentences is None):
            got = "neither" if self.text is None else "both"
            raise ValueError(f"either `text` or `sentences`, got {got}")
        return self


class ParseRequest(_Sentences):
    """Sentences to parse."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "The cat sat on the mat. It slept."},
                {
                    "sentences": [
                        "The cat sat on the mat.",
                        {
                            "id": "s2",
                            "tokens": ["Cats", "sleep", "."],
                            "tags": ["NNS", None, "."],
                            "constraints": [{"start": 0, "end": 1, "label": "NP"}],
                        },
                    ],
                    "k": 3,
                    "objective": "max-rule",
                },
            ]
        }
    )

    k: int = Field(1, ge=1, description="how many trees a sentence, best first")
    objective: Objective = Field("max-rule", description="what the best tree maximises")


class Span(_Request):
    """Tokens [start, end)."""

    start: int = Field(ge=0)
    end: int = Field(ge=1)

    @model_validator(mode="after")
    def _has_tokens(self) -> Self:
        if self.start >= self.end:
            raise ValueError(f"start before end, got start {self.start} and end {self.end}")
        return self


class MarginalsRequest(_Sentences):
    """One sentence: `text` is taken for one, `sentences` must have exactly one."""

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

    spans: list[Span] | None = Field(None, description="answer these spans only")
    threshold: float = Field(
        0.01, ge=0, le=1, allow_inf_nan=False, description="leave out what is less probable"
    )
    raw: bool = Field(False, description="the grammar's own symbols, nothing calibrated")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.sentences is not None and len(self.sentences) != 1:
            raise ValueError(f"exactly one sentence, got {len(self.sentences)}")
        return self


class TreesRequest(_Request):
    """Trees to score, as Penn brackets."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"trees": ["(S (NP (NNS Cats)) (VP (VBP sleep)) (. .))", "(S (NP"]}]
        }
    )

    trees: list[str]
    model: str | None = Field(
        None, min_length=1, description="NAME or NAME@VERSION of a model that is served"
    )


# Answers ------------------------------------------------------------------------------------------


class ModelVersion(_Answer):
    """The very model that answered. `hash` is the SHA-256 of its manifest."""

    name: str = Field(examples=["en"])
    version: int = Field(examples=[1])
    hash: str = Field(examples=["5f0c1d2e" * 8])


class ModelFacts(ModelVersion):
    """A model that is served."""

    default: bool = Field(description="whether it answers requests that name no model")
    symbols: int = Field(examples=[1021])
    rules: int = Field(examples=[14873])
    states: int = Field(description="most latent states of a symbol", examples=[32])
    labels: list[str] = Field(
        description="labels of constituents, as constraints may name them",
        examples=[["NP", "S", "VP"]],
    )
    tags: list[str] = Field(description="tags of words", examples=[["DT", "NN", "VBZ"]])


class ModelDetails(ModelFacts):
    """A model that is served, with all its training says of it."""

    facts: dict[str, Any] = Field(description="configuration, sizes, scores, as published")


class Models(_Answer):
    """All models that are served."""

    models: list[ModelFacts]


class TokenAnswer(_Answer):
    """A token, its place in the text (if there is one) and its tag in the best tree."""

    text: str = Field(examples=["cat"])
    start: int | None = Field(examples=[4])
    end: int | None = Field(examples=[7])
    tag: str | None = Field(examples=["NN"])
    probability: float | None = Field(examples=[0.993])


class ConstituentAnswer(_Answer):
    """A labelled span of a tree and how likely it is to be right."""

    label: str = Field(examples=["NP"])
    start: int = Field(examples=[0])
    end: int = Field(examples=[2])
    start_char: int | None = Field(examples=[0])
    end_char: int | None = Field(examples=[7])
    probability: float | None = Field(examples=[0.978])


class ParseAnswer(_Answer):
    """One tree with its score under the objective and log p(tree)."""

    tree: str = Field(examples=["(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))"])
    score: float
    log_probability: float | None
    sign: int | None = Field(description="of p(tree): spectral estimates may be negative")
    constituents: list[ConstituentAnswer]


class SentenceAnswer(_Answer):
    """The answer to one sentence, always: partial and failed ones say why in `reason`."""

    id: int | str | None
    status: Literal["parsed", "partial", "failed"]
    reason: str | None
    text: str | None
    start: int | None
    end: int | None
    tokens: list[TokenAnswer]
    log_probability: float | None
    sign: int | None
    parses: list[ParseAnswer]


class ParseResponse(_Answer):
    """One answer a sentence, in order."""

    model: ModelVersion
    sentences: list[SentenceAnswer]


class SpanAnswer(_Answer):
    """A label over tokens [start, end) with its posterior; μ as sign and log of its magnitude."""

    label: str = Field(examples=["NP"])
    start: int = Field(examples=[0])
    end: int = Field(examples=[2])
    probability: float = Field(examples=[0.978])
    sign: int = Field(examples=[1])
    log_magnitude: float | None = Field(examples=[-31.4], description="null where μ is zero")


class CellAnswer(_Answer):
    """Tokens [start, end) and the expected number of constituents over them."""

    start: int = Field(examples=[0])
    end: int = Field(examples=[2])
    expected: float = Field(examples=[1.02])


class PlainToken(_Answer):
    """A token and its place in the text, if there is one."""

    text: str = Field(examples=["cat"])
    start: int | None = Field(examples=[4])
    end: int | None = Field(examples=[7])


class MarginalsResponse(_Answer):
    """Labelled spans of one sentence with their posteriors."""

    model: ModelVersion
    id: int | str | None
    status: Literal["parsed", "partial", "failed"]
    reason: str | None
    tokens: list[PlainToken]
    log_probability: float | None
    sign: int | None
    clipped_mass: float = Field(description="posterior mass outside [0, 1] that was cut off")
    spans: list[SpanAnswer]
    cells: list[CellAnswer]


class Fault(_Answer):
    """One of several things wrong with a request, and where."""

    detail: str = Field(examples=["expected a valid integer, got 'three'"])
    at: str = Field(description="JSON pointer into the request", examples=["/k"])


class Problem(_Answer):
    """What every failed request is answered with (RFC 9457, application/problem+json)."""

    type: str = Field(description="the kind of problem", examples=["/docs#problem-limit"])
    title: str = Field(examples=["A limit of this service is exceeded"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["expected at most 200 tokens in a sentence, got 412: split it"])
    at: str | None = Field(
        None, description="JSON pointer into the request", examples=["/sentences/0"]
    )
    limit: float | None = Field(None, description="the limit that was exceeded", examples=[200])
    value: float | None = Field(None, description="what came instead", examples=[412])
    line: int | None = Field(None, description="line of a text, from 1", examples=[None])
    column: int | None = Field(None, description="column of that line, from 1", examples=[None])
    errors: list[Fault] | None = Field(None, description="all faults, where there are several")


class TreeAnswer(_Answer):
    """log p(tree), log p(sentence), log p(tree | sentence); or why not, or the brackets' problem.

    A tree that the grammar cannot build has sign 0, no log, and `reason` says what is missing.
    """

    log_probability: float | None
    sign: int | None
    sentence_log_probability: float | None
    conditional_log_probability: float | None
    reason: str | None
    tree: str | None = Field(
        description="what was scored: the tree without traces, function tags and wrapper",
        examples=["(S (NP (NNS Cats)) (VP (VBP sleep)) (. .))"],
    )
    missing: list[int] | None = Field(
        description="nodes of `tree`, in pre-order from 0, whose rule or word the grammar lacks",
        examples=[[]],
    )
    problem: Problem | None


class TreesResponse(_Answer):
    """One answer a tree, in order."""

    model: ModelVersion
    trees: list[TreeAnswer]


class BatchLine(_Answer):
    """The answer to one line of a batch: a sentence or a problem."""

    line: int = Field(description="number of the line answered, from 1", examples=[1])
    model: ModelVersion
    sentence: SentenceAnswer | None = None
    problem: Problem | None = None


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
