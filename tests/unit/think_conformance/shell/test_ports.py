"""Free ports and who listens on one."""

from __future__ import annotations

import os
import socket

from think_conformance.shell.ports import LOOPBACK, free_port, is_free, listener, listening


def test_a_port_is_free_until_somebody_listens() -> None:
    port = free_port()
    assert is_free(port)
    with socket.create_server((LOOPBACK, port)):
        assert not is_free(port)
    assert is_free(port)


def test_leftovers_of_ended_connections_do_not_make_a_port_taken() -> None:
    port = free_port()
    with (
        socket.create_server((LOOPBACK, port)) as server,
        socket.create_connection((LOOPBACK, port)) as client,
    ):
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps the port in TIME_WAIT
        assert client.recv(1) == b""
    assert is_free(port)


def test_a_listener_is_known_by_its_process_group() -> None:
    port = free_port()
    assert listener(port, os.getpgrp()) == "nobody"
    with socket.create_server((LOOPBACK, port)):
        assert listener(port, os.getpgrp()) == "ours"
        assert listener(port, 2**22) == "foreign"
    with socket.create_server(("::1", port), family=socket.AF_INET6):
        assert listener(port, os.getpgrp()) == "ours"


def test_the_ports_of_a_group_are_known() -> None:
    with socket.create_server((LOOPBACK, 0)) as one, socket.create_server((LOOPBACK, 0)) as other:
        ports = {one.getsockname()[1], other.getsockname()[1]}
        assert ports <= listening(os.getpgrp())
        assert listening(2**22) == frozenset()
    assert not ports & listening(os.getpgrp())
