"""A certificate authority of our own, and a server it vouches for (`localhost`, 127.0.0.1), until 2126.

Made by `openssl`: `ca.pem` is the authority, whose key was thrown away; `server.pem` holds the key and the
certificate of the server. Nobody trusts them but the tests.
"""

from __future__ import annotations

import ssl
from pathlib import Path

CA = Path(__file__).with_name("ca.pem")


def server_side() -> ssl.SSLContext:
    """What a server of the tests speaks TLS with."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CA.with_name("server.pem"))
    return context
