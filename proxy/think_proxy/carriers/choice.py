"""The carriers by the names that users give them."""

from __future__ import annotations

from think_proxy.carriers.abilities import EMBEDDED, MITMPROXY
from think_proxy.carriers.embedded import EmbeddedProxy
from think_proxy.carriers.supervised import MitmProxy, check_usable

PROXIES: dict[str, type[EmbeddedProxy] | type[MitmProxy]] = {EMBEDDED: EmbeddedProxy, MITMPROXY: MitmProxy}


def check_carrier(name: str, *, tls: bool) -> None:
    """Raises Unavailable, one line, where the carrier of this name cannot be used, in front of a server that
    speaks TLS or one that does not."""
    if name == MITMPROXY:
        check_usable(tls=tls)
