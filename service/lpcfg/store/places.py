"""The places where models are looked for unless a setting says otherwise."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_BESIDE_THE_CODE = _PACKAGE.parents[1] / "model_store"


def default_store() -> str:
    """Find `model_store` in the checkout this code runs from, or else in the current folder."""
    return str(_BESIDE_THE_CODE if _BESIDE_THE_CODE.is_dir() else Path("model_store"))


def package_store() -> Path:
    """Find the models that came with the package: inside it, or in a checkout beside its code."""
    inside = _PACKAGE / "model_store"
    return inside if inside.is_dir() else _BESIDE_THE_CODE
