"""The journal of one agent: a SQLite file. Every `write` is one transaction.

WAL with synchronous=NORMAL survives the death of the process, not the loss of power; `durable`
waits for the disk (FULL). The lock is held as long as the file is open, so two processes never
serve one agent.
"""

from __future__ import annotations

import logging
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

_SCHEMA = """
create table if not exists agent (kind text not null, name text not null);
create table if not exists turn (
    id text primary key, root text not null, run integer not null, place integer not null,
    kind text not null, state text not null, outcome text, message_ids text not null, anchor text,
    message_id text, body text not null, attempt integer not null, evaluated_at real not null,
    error text not null
) without rowid;
create table if not exists chunk (
    request_id text not null, seq integer not null, body text not null, primary key (request_id, seq)
) without rowid;
create table if not exists message (id text primary key, position integer not null, body text not null);
create index if not exists message_position on message (position);
create table if not exists meta (key text primary key, value text not null) without rowid;
"""

_PUT_TURN = "insert or replace into turn values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class JournalError(Exception):
    """The journal cannot be opened or written; the text says which and why."""


class LoadError(Exception):
    """What a journal holds makes no agent; the text says which and why. It concerns no other agent."""


class Journal:
    """The open file. `path` from `path_of`; kind and name are written inside it. Raises JournalError,
    and LoadError for a file that is no database."""

    def __init__(self, path: Path, kind: str, name: str, *, durable: bool = False) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(path, timeout=LOCK_S, isolation_level=None)
            self._db.execute("pragma locking_mode = exclusive")
            self._db.execute("pragma journal_mode = wal")
            self._db.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
            self._db.executescript(_SCHEMA)
            if self._db.execute("select 1 from agent").fetchone() is None:
                self._db.execute("insert into agent values (?, ?)", (kind, name))
        except sqlite3.Error as error:
            raise _failure(path, error) from error

    def read(self) -> Rows:
        """Everything that is stored. Raises LoadError."""
        try:
            return self._read()
        except (sqlite3.Error, msgspec.MsgspecError, ValueError) as error:
            raise LoadError(f"{self._path}: {error}") from error

    def write(self, writes: Iterable[Write]) -> None:
        """Do all of these, or none; on return they are committed. Raises JournalError."""
        try:
            self._db.execute("begin immediate")
            for write in writes:
                _STATEMENTS[type(write)](self._db, write)
            self._db.execute("commit")
        except sqlite3.Error as error:
            raise JournalError(f"{self._path}: {error}") from error

    def close(self) -> None:
        """Close the file and give up its lock."""
        self._db.close()

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
        db = sqlite3.connect(path, timeout=LOCK_S)
        try:
            tables = {name for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
            if not {"agent", "turn"} <= tables:
                return []  # the process died while it made the file
            found = db.execute(
                "select kind, name from agent where exists (select 1 from turn where state <> 'ended')"
            )
            return [(kind, name) for kind, name in found]
        finally:
            db.close()
    except sqlite3.Error as error:
        failure = _failure(path, error)
        if isinstance(failure, JournalError):
            raise failure from error
        _log.error("%s", failure)
        return []


def _failure(path: Path, error: sqlite3.Error) -> JournalError | LoadError:
    """A file that is locked or out of reach is the operator's business; a broken one is its agent's."""
    kind = JournalError if isinstance(error, sqlite3.OperationalError) else LoadError
    return kind(f"{path}: {error}")


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
