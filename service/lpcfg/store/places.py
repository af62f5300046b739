"""The place where models are looked for unless a setting says otherwise."""

from pathlib import Path


def default_store() -> str:
    """Find `model_store` in the checkout this code runs from, or else in the current folder."""
    beside_the_code = Path(__file__).resolve().parents[3] / "model_store"
    return str(beside_the_code if beside_the_code.is_dir() else Path("model_store"))
