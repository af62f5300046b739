"""Find out which client sent a request: the owner of its key, or the address it comes from."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from lpcfg.base.errors import SettingsError

_NETWORK = 64  # bits of an IPv6 address that a provider gives one client


class Proxies:
    """The proxies in front of the service, whose X-Forwarded-For is believed."""

    def __init__(self, networks: Iterable[str]) -> None:
        try:
            self._networks = [ip_network(one) for one in networks]
        except ValueError as error:
            raise SettingsError(
                f"expected addresses or networks of proxies, got {error}: write them like "
                "10.0.0.0/8 in LPCFG_PROXIES"
            ) from error

    def address(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the address of a client: that of the peer, or what proxies say of it."""
        if not self._networks or not self._has(peer):
            return peer
        told = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
        for one in reversed(",".join(told).split(",")):
            host = one.strip()
            if host and not self._has(host):
                return host if _is_address(host) else peer
        return peer

    def _has(self, host: str) -> bool:
        return _is_address(host) and any(ip_address(host) in one for one in self._networks)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def group(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or a network of IPv6 addresses."""
    if not _is_address(address):
        return address
    found = ip_address(address)
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found), _NETWORK), strict=False))
