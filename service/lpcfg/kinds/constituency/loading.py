"""Make a parser in little time: kernels that are not kept yet are compiled in two processes."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lpcfg.base.collector import collector_paused
from lpcfg.base.jit import when_compiling
from lpcfg.engine.warmup import background_compiler
from lpcfg.store.places import default_store
from lpcfg.store.versions import Stored, load

if TYPE_CHECKING:
    from lpcfg.kinds.constituency.predict import Parser


def ready(stored: Stored) -> "Parser":
    """Make the parser of a stored model, and begin to compile what is not compiled yet."""
    from lpcfg.kinds.constituency.model import from_bundle
    from lpcfg.kinds.constituency.predict import Parser

    with collector_paused():  # the first kernels are loaded here
        model = from_bundle(stored)
        stored.let_go()
        # without a layer there is too little left for another process
        in_two = model.rescoring is not None
        beside = partial(background_compiler.begin, _compile_the_rest)
        with when_compiling(beside) if in_two else nullcontext():
            parser = Parser(model, reference=stored.reference)
            if background_compiler.is_running:
                parser.compile_the_tensors()
    stored.let_go()
    return parser


def _compile_the_rest() -> None:
    """Compile the kernels that run before and after the tensors, in the second process."""
    from lpcfg.kinds.constituency.model import from_bundle
    from lpcfg.kinds.constituency.predict import Parser

    model = from_bundle(load("en", default_store()))
    Parser(replace(model, members=(), weights=())).compile_the_rest()  # of the tensors elsewhere
