"""Reach files by fsspec URLs (s3://, gs://, memory:// and others), and say what is missing."""

import sys
from typing import Any

from lpcfg.base.errors import InputError

_EXTRAS = {"s3": "s3", "s3a": "s3", "zst": "zst", "parquet": "parquet", "scheduler": "distributed"}
"""Extras of lpcfg by what they are for: URL schemes, endings of files, and options."""


def is_url(source: object) -> bool:
    """Return True for a string such as s3://bucket/folder; plain paths are none."""
    return isinstance(source, str) and "://" in source


def filesystem(url: str) -> tuple[Any, str]:
    """Return the fsspec filesystem of a URL, and the path inside it."""
    # Imported here, because it takes 0.1 s and local files do not need it.
    from fsspec.core import url_to_fs

    protocol = url.partition("://")[0]
    try:
        files, path = url_to_fs(url)
    except ImportError as error:
        if protocol in _EXTRAS:
            raise missing(protocol, f"{protocol}:// URLs") from error
        raise InputError(
            f"expected the package that reads {protocol}:// URLs, found none: {error}"
        ) from error
    except ValueError as error:
        raise InputError(
            f"expected a path or an fsspec URL such as s3://bucket/folder, got {url}: {error}"
        ) from error
    return files, path


def missing(kind: str, what: str) -> InputError:
    """Make the error about an optional package that is not installed."""
    extra = _EXTRAS[kind]
    return InputError(
        f"expected the packages that {what} need, found none: pip install 'lpcfg[{extra}]'"
    )


def network_failures() -> tuple[type[Exception], ...]:
    """List the errors that a filesystem in use may raise.

    Those of botocore (no credentials, no such host) are no OSErrors.
    """
    failures: tuple[type[Exception], ...] = (OSError,)
    botocore = sys.modules.get("botocore.exceptions")
    if botocore is not None:
        failures += (botocore.BotoCoreError, botocore.ClientError)
    return failures
