"""Constituency parsing with latent-variable PCFGs learned by the spectral method."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpcfg.client import AsyncClient, Client, ServiceError

__all__ = ["AsyncClient", "Client", "ServiceError"]


def __getattr__(name: str) -> Any:
    """The client's names, imported when they are asked for: commands do without httpx."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lpcfg import client

    return getattr(client, name)
