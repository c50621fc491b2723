"""The journal of one agent: a SQLite file. Every `write` is one transaction.

WAL with synchronous=NORMAL survives the death of the process, not the loss of power; `durable`
waits for the disk (FULL). The lock is held as long as the file is open, so two processes never
serve one agent. A file that is not ours, or of another time, is told from ours before a byte of it is
written.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from think_conformance.wire.codec import dumps, loads
from think_reference.core.effects import (
    AddChunk,
    ClearChat,
    DeleteMessage,
    DropChunks,
    DropMeta,
    InsertMessage,
    PutMeta,
    PutTurn,
    Rows,
    UpdateMessage,
    Write,
)
from think_reference.core.turn import Turn

SUFFIX = ".sqlite3"
LOCK_S = 1.0

_log = logging.getLogger(__name__)

APPLICATION = 0x54686E6B
"""Marks a file as one of ours, where SQLite keeps a mark for that."""

VERSION = 1
"""Of the schema. A newer one is left to who knows it."""

CACHE_KIB = 512
"""What SQLite may keep of one file in memory."""

_SCHEMA = f"""
pragma application_id = {APPLICATION};
pragma user_version = {VERSION};
create table agent (kind text not null, name text not null);
create table turn (
    id text primary key, root text not null, run integer not null, place integer not null,
    kind text not null, state text not null, outcome text, message_ids text not null, anchor text,
    message_id text, body text not null, attempt integer not null, evaluated_at real not null,
    error text not null
) without rowid;
create table chunk (
    request_id text not null, seq integer not null, body text not null, primary key (request_id, seq)
) without rowid;
create table message (id text primary key, position integer not null, body text not null);
create index message_position on message (position);
create table meta (key text primary key, value text not null) without rowid;
"""

_ALONE = "pragma locking_mode = exclusive"
"""Also spares the file that SQLite shares between processes, for which a full disk has no room."""

_PUT_TURN = "insert or replace into turn values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


_ANEW = "put back a copy, or move it away to begin anew"

_NEXT = {
    sqlite3.SQLITE_BUSY: "end the other process that has it open",
    sqlite3.SQLITE_CANTOPEN: "it must be a file that this user may read and write",
    sqlite3.SQLITE_CORRUPT: _ANEW,
    sqlite3.SQLITE_ERROR: _ANEW,
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "see to the disk and to the room on it",
    sqlite3.SQLITE_NOTADB: _ANEW,
    sqlite3.SQLITE_READONLY: "make it writable for this user",
}
"""What to do, by the primary code of an error."""

_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_NOTADB)
"""The codes that speak of what is in the file."""


class JournalError(Exception):
    """The journal cannot be opened or written now; the text says which, why and what to do."""


class LoadError(Exception):
    """What a journal holds makes no agent; the text says which, why and what to do. It concerns no other
    agent."""


class Journal:
    """The open file. `path` is from `path_of`; kind and name are written inside it. Raises JournalError,
    and LoadError for a file that is no journal of this agent."""

    def __init__(self, path: Path, kind: str, name: str, *, durable: bool = False) -> None:
        self.path = path
        if path.is_file() and not os.access(path, os.W_OK):
            raise JournalError(f"{path}: read-only; {_NEXT[sqlite3.SQLITE_READONLY]}")
        try:
            self._db = sqlite3.connect(path, timeout=LOCK_S, isolation_level=None)
        except sqlite3.Error as error:
            raise _failure(path, error) from error
        try:
            self._db.execute(_ALONE)
            empty = not _is_ours(path, self._db)
            if empty and not durable:  # what holds nothing has nothing to lose: no waiting for the disk
                self._db.execute("pragma synchronous = off")
            self._db.execute("pragma journal_mode = wal")
            if empty:
                self._create(kind, name)
            self._db.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
            self._db.execute(f"pragma cache_size = {-CACHE_KIB}")
            _owner(path, self._db)
        except sqlite3.Error as error:
            self.close()
            raise _failure(path, error) from error
        except LoadError:
            self.close()
            raise

    def read(self) -> Rows:
        """Everything that is stored. Raises LoadError."""
        try:
            return self._read()
        except (sqlite3.Error, msgspec.MsgspecError, ValueError) as error:
            raise LoadError(_line(self.path, error)) from error

    def write(self, writes: Iterable[Write]) -> None:
        """Do all of these, or none; on return they are committed. Raises JournalError, after which it can
        only be closed."""
        try:
            self._db.execute("begin immediate")
            for write in writes:
                _STATEMENTS[type(write)](self._db, write)
            self._db.execute("commit")
        except sqlite3.Error as error:
            raise JournalError(_line(self.path, error)) from error

    def close(self) -> None:
        """Close the file and give up its lock."""
        self._db.close()

    def _create(self, kind: str, name: str) -> None:
        """Make the tables and name the owner, at once or not at all."""
        self._db.executescript(f"begin immediate; {_SCHEMA}")
        self._db.execute("insert into agent values (?, ?)", (kind, name))
        self._db.execute("commit")

    def _read(self) -> Rows:
        columns = "id, root, place, run, kind, state, outcome, message_ids, anchor, message_id, body"
        turns = self._db.execute(f"select {columns}, attempt, evaluated_at, error from turn")
        chunks: dict[str, list[str]] = {}
        for request_id, body in self._db.execute(
            "select request_id, body from chunk order by request_id, seq"
        ):
            chunks.setdefault(request_id, []).append(body)
        messages = self._db.execute("select body from message order by position")
        meta = self._db.execute("select key, value from meta")
        return Rows(
            turns=[_turn(row) for row in turns],
            chunks=chunks,
            messages=[loads(body) for (body,) in messages],
            meta={key: loads(value) for key, value in meta},
        )


def path_of(folder: Path, kind: str, name: str) -> Path:
    """The file of an agent: a hash, since a name may hold anything."""
    return folder / (sha256(f"{kind}\n{name}".encode()).hexdigest()[:40] + SUFFIX)


def unfinished(folder: Path) -> list[tuple[str, str]]:
    """(kind, name) of every agent in the folder with a turn that has not ended. What is no journal is
    logged and left alone. Raises JournalError."""
    return [owner for path in sorted(folder.glob(f"*{SUFFIX}")) for owner in _owner_if_unfinished(path)]


def _owner_if_unfinished(path: Path) -> list[tuple[str, str]]:
    try:
        return _owner_of_open_turns(path)
    except LoadError as error:
        _log.error("%s", error)
        return []


def _owner_of_open_turns(path: Path) -> list[tuple[str, str]]:
    try:
        db = sqlite3.connect(path, timeout=LOCK_S)
        try:
            if os.access(path, os.W_OK):
                db.execute(_ALONE)
            if not _is_ours(path, db):
                return []  # the process died while it made the file
            owner = _owner(path, db)
            waits = db.execute("select 1 from turn where state <> 'ended' limit 1").fetchone()
            return [owner] if waits else []
        finally:
            db.close()
    except sqlite3.Error as error:
        raise _failure(path, error) from error


def _is_ours(path: Path, db: sqlite3.Connection) -> bool:
    """Whether the file is a journal; it is none yet while it is empty. Writes nothing. Raises LoadError
    for what is of somebody else, or of a later version."""
    (mark,) = db.execute("pragma application_id").fetchone()
    (version,) = db.execute("pragma user_version").fetchone()
    (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
    if (mark, version, tables) == (0, 0, 0):
        return False
    if mark != APPLICATION:
        raise LoadError(f"{path}: a database of another program; move it out of the data folder")
    if version != VERSION:
        raise LoadError(
            f"{path}: a journal of version {version}, and this think-reference knows {VERSION}; "
            "use the one that wrote it"
        )
    return True


def _owner(path: Path, db: sqlite3.Connection) -> tuple[str, str]:
    """(kind, name) of the agent in the file. Raises LoadError where that agent would not be looked for."""
    kind, name = db.execute("select kind, name from agent").fetchone()
    if path != path_of(path.parent, kind, name):
        raise LoadError(f"{path}: a copy of the journal of {kind}/{name}; move it out of the data folder")
    return kind, name


def _failure(path: Path, error: sqlite3.Error) -> JournalError | LoadError:
    """A file that is locked or out of reach is the operator's business; a broken one is its agent's."""
    return (LoadError if _primary(error) in _BROKEN else JournalError)(_line(path, error))


def _line(path: Path, error: Exception) -> str:
    """Which file, why, and what to do; in one line."""
    step = _NEXT.get(_primary(error), _ANEW if isinstance(error, ValueError) else "")
    return f"{path}: {error}" + (f"; {step}" if step else "")


def _primary(error: Exception) -> int:
    """The primary code of an error of SQLite."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _turn(row: tuple[Any, ...]) -> Turn:
    fields = dict(zip(Turn.__struct_fields__, row, strict=True))
    fields["message_ids"] = loads(fields["message_ids"])
    fields["body"] = loads(fields["body"])
    fields["error"] = loads(fields["error"])
    return msgspec.convert(fields, Turn)


def _put_turn(db: sqlite3.Connection, write: PutTurn) -> None:
    t = write.turn
    # as JSON, since an error quotes texts that may hold half a surrogate, which SQLite cannot
    ids, body, error = dumps(t.message_ids), dumps(t.body), dumps(t.error)
    place = (t.id, t.root, t.run, t.order, t.kind, t.state, t.outcome, ids, t.anchor)
    db.execute(_PUT_TURN, (*place, t.message_id, body, t.attempt, t.evaluated_at, error))


def _add_chunk(db: sqlite3.Connection, write: AddChunk) -> None:
    db.execute("insert into chunk values (?, ?, ?)", (write.request_id, write.seq, write.body))


def _drop_chunks(db: sqlite3.Connection, write: DropChunks) -> None:
    db.execute("delete from chunk where request_id = ?", (write.request_id,))


def _insert_message(db: sqlite3.Connection, write: InsertMessage) -> None:
    db.execute("update message set position = position + 1 where position >= ?", (write.position,))
    row = (write.message["id"], write.position, dumps(write.message))
    db.execute("insert into message values (?, ?, ?)", row)


def _update_message(db: sqlite3.Connection, write: UpdateMessage) -> None:
    db.execute("update message set body = ? where id = ?", (dumps(write.message), write.message["id"]))


def _delete_message(db: sqlite3.Connection, write: DeleteMessage) -> None:
    db.execute("delete from message where position = ?", (write.position,))
    db.execute("update message set position = position - 1 where position > ?", (write.position,))


def _put_meta(db: sqlite3.Connection, write: PutMeta) -> None:
    db.execute("insert or replace into meta values (?, ?)", (write.key, dumps(write.value)))


def _drop_meta(db: sqlite3.Connection, write: DropMeta) -> None:
    db.execute("delete from meta where key = ?", (write.key,))


def _clear_chat(db: sqlite3.Connection, write: ClearChat) -> None:
    for table in ("turn", "chunk", "message"):
        db.execute(f"delete from {table}")


_STATEMENTS: dict[type[Any], Callable[[sqlite3.Connection, Any], None]] = {
    PutTurn: _put_turn,
    AddChunk: _add_chunk,
    DropChunks: _drop_chunks,
    InsertMessage: _insert_message,
    UpdateMessage: _update_message,
    DeleteMessage: _delete_message,
    PutMeta: _put_meta,
    DropMeta: _drop_meta,
    ClearChat: _clear_chat,
}
