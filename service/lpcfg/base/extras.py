"""Name the extra of this package that a missing library belongs to."""

from collections.abc import Iterator
from contextlib import contextmanager

from lpcfg.base.errors import InputError


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Turn the absence of a library that is imported inside into an error that names the extra.

    Args:
        name: the extra in pyproject.toml
        what: a plural for the message: "expected the packages that … need"
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "lpcfg":
            raise
        raise InputError(
            f"expected the packages that {what} need, found no {error.name or 'such package'}: "
            f"pip install 'lpcfg[{name}]'"
        ) from error
