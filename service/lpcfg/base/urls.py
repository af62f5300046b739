"""Reach files by fsspec URLs (s3://, gs://, memory:// and others), and say what is missing."""

import sys
from typing import Any

from lpcfg.base.errors import InputError
from lpcfg.base.extras import extra

_EXTRAS = {"s3": "s3", "s3a": "s3"}
"""Extras of lpcfg by schemes of URLs."""


def is_url(source: object) -> bool:
    """Return True for a string such as s3://bucket/folder; plain paths are none."""
    return isinstance(source, str) and "://" in source


def filesystem(url: str) -> tuple[Any, str]:
    """Return the fsspec filesystem of a URL, and the path inside it."""
    # Imported here, because it takes 0.1 s and local files do not need it.
    with extra("remote", "URLs"):
        from fsspec.core import url_to_fs

    protocol = url.partition("://")[0]
    try:
        with extra(_EXTRAS.get(protocol, "remote"), f"{protocol}:// URLs"):
            files, path = url_to_fs(url)
    except ValueError as error:
        raise InputError(
            f"expected a path or an fsspec URL such as s3://bucket/folder, got {url}: {error}"
        ) from error
    return files, path


def network_failures() -> tuple[type[Exception], ...]:
    """List the errors that a filesystem in use may raise.

    Those of botocore (no credentials, no such host) are no OSErrors.
    """
    failures: tuple[type[Exception], ...] = (OSError,)
    botocore = sys.modules.get("botocore.exceptions")
    if botocore is not None:
        failures += (botocore.BotoCoreError, botocore.ClientError)
    return failures
