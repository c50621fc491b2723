"""Which TCP port is free, and whose process group listens on one. Loopback only."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path
from typing import Literal

LOOPBACK = "127.0.0.1"

_LISTEN = "0A"


def free_port() -> int:
    """A free port below the range that systems hand out by themselves, so that nobody's outgoing
    connection or port-0 server takes it while a target is dead between a kill and a restart."""
    for port in random.sample(range(15_000, 32_000), 100):
        if is_free(port):
            return port
    raise OSError("no free port between 15000 and 32000 on 127.0.0.1")


def is_free(port: int) -> bool:
    """Whether a server could listen there now; leftovers of ended connections do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def listener(port: int, group: int) -> Literal["ours", "foreign", "nobody", "unknown"]:
    """Whose server listens on the port: a process of the group or not. `unknown` without a /proc to ask."""
    if not _tables():
        return "unknown"
    found = (entry for table in _tables() for entry in _listeners(table))
    sockets = {f"socket:[{inode}]" for listened, inode in found if listened == port}
    if not sockets:
        return "nobody"
    return "ours" if any(sockets & _open_files(member) for member in _members(group)) else "foreign"


def listening(group: int) -> frozenset[int]:
    """The ports on which a process of the group listens; none without a /proc to ask."""
    if not _tables():
        return frozenset()
    files = {name for member in _members(group) for name in _open_files(member)}
    found = (entry for table in _tables() for entry in _listeners(table))
    return frozenset(port for port, inode in found if f"socket:[{inode}]" in files)


def _tables() -> list[Path]:
    return [table for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if table.exists()]


def _listeners(table: Path) -> list[tuple[int, str]]:
    """Port and inode of every socket that listens."""
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    return [(int(row[1].rpartition(":")[2], 16), row[9]) for row in rows if row[3] == _LISTEN]


def _members(group: int) -> list[Path]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            # The command name may hold spaces and parentheses; the fields proper follow the last one.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if int(fields[2]) == group:
            found.append(entry)
    return found


def _open_files(process: Path) -> set[str]:
    names = set()
    with suppress(OSError):  # it ended meanwhile
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):  # it closed this one meanwhile
                names.add(str(descriptor.readlink()))
    return names
