"""The model store: models as numbered versions that never change and are verified before use.

`model_store/FORMAT.md` specifies folders, manifest, hashes and protocols; this package is the only
one that reads or writes them. It does not know what the arrays mean: it stores a `Bundle`, and
`lpcfg.kinds.constituency.model` turns a model into a bundle and back.
"""
