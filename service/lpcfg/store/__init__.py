"""The model store: models as numbered versions that never change and are verified before use.

`model_store/FORMAT.md` specifies folders, manifest, hashes and protocols; this package is the only
one that reads or writes them. It knows nothing of what the arrays mean: it stores a `Bundle`, and
`lpcfg.model` turns a model into a bundle and back.
"""

from lpcfg.store.files import Bundle, Tensors
from lpcfg.store.versions import (
    CheckedFile,
    Listed,
    Reference,
    Stored,
    check_name,
    check_publishable,
    list_models,
    load,
    publish,
    remove,
    resolve,
    verify,
)

__all__ = [
    "Bundle",
    "CheckedFile",
    "Listed",
    "Reference",
    "Stored",
    "Tensors",
    "check_name",
    "check_publishable",
    "list_models",
    "load",
    "publish",
    "remove",
    "resolve",
    "verify",
]
