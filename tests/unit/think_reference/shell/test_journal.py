"""The SQLite journal keeps exactly what a plain list of rows would."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_world import World, applied, assistant, stored_user, user
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
)
from think_reference.core.turn import Turn
from think_reference.shell.journal import Journal, JournalError, LoadError, path_of, unfinished

TURN = Turn(
    id="r1",
    root="r0",
    order=3,
    run=2,
    kind="continue",
    state="ended",
    outcome="error",
    message_ids=("u1", "ü\n\0"),
    anchor="u1",
    message_id="a1",
    body={"k": [1, None, {"x": 2**70}]},
    attempt=4,
    evaluated_at=1234.5,
    error="half \ud83d",
)
WRITES = [
    PutTurn(TURN),
    PutTurn(Turn(id="r2", root="r2", order=0)),
    PutTurn(Turn(id="r2", root="r2", order=0).started("a2")),
    AddChunk("r1", 0, "{}"),
    AddChunk("r1", 1, "two"),
    AddChunk("r2", 0, "x"),
    InsertMessage(0, stored_user("u1")),
    InsertMessage(1, stored_user("u2")),
    InsertMessage(1, assistant("a1", "one")),
    UpdateMessage(assistant("a1", "one two")),
    InsertMessage(0, stored_user("u0")),
    DeleteMessage(1),
    DropChunks("r1"),
    PutMeta("state", None),
    PutMeta("failure", "r1"),
    PutMeta("failure", "r2"),
    DropMeta("failure"),
]


def by_id(rows: Rows) -> Rows:
    return Rows(sorted(rows.turns, key=lambda t: t.id), rows.chunks, rows.messages, rows.meta)


def test_every_write_is_kept_across_closing(tmp_path: Path) -> None:
    path = path_of(tmp_path, "k", "n")
    expected = Rows()
    for write in WRITES:
        journal = Journal(path, "k", "n")
        journal.write([write])
        journal.close()
        expected = applied(expected, write)
        journal = Journal(path, "k", "n")
        assert by_id(journal.read()) == by_id(expected), write
        journal.close()
    journal = Journal(path, "k", "n", durable=True)
    journal.write([ClearChat()])
    assert journal.read() == Rows(meta={"state": None})
    journal.close()


@settings(max_examples=15, deadline=None)
@given(
    steps=st.lists(st.sampled_from(["send", "say", "finish", "fail", "crash", "again", "clear"]), max_size=15)
)
def test_a_life_of_an_agent_is_kept_as_the_core_meant_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal(path_of(folder, "k", "n"), "k", "n")
    world = World()
    world.connect(1)
    for number, step in enumerate(steps):
        effects = _step(world, step, number)
        for effect in effects:
            if hasattr(effect, "writes"):
                journal.write(effect.writes)
    assert by_id(journal.read()) == by_id(world.rows)
    journal.close()


def _step(world: World, step: str, number: int) -> list[object]:
    conn = max(world.frames, default=0)
    if step == "crash":
        effects = world.crash()
        world.connect(conn + 1)
        return list(effects)
    if step == "send":
        return list(world.send(conn, f"r{number}", user(f"u{number}")))
    if step == "again":
        return list(world.send(conn, f"r{number}", user("u0"), trigger="regenerate-message"))
    if step == "clear":
        return list(world.clear(conn))
    if not world.calls:
        return []
    return list(
        {"say": lambda: world.say("x"), "finish": world.finish, "fail": lambda: world.fail("e")}[step]()
    )


def test_a_transaction_is_whole_or_nothing(tmp_path: Path) -> None:
    journal = Journal(path_of(tmp_path, "k", "n"), "k", "n")
    journal.write([InsertMessage(0, stored_user("u1"))])
    with pytest.raises(JournalError, match="UNIQUE"):
        journal.write([PutTurn(TURN), InsertMessage(1, stored_user("u1"))])
    journal.close()
    journal = Journal(path_of(tmp_path, "k", "n"), "k", "n")
    assert journal.read() == Rows(messages=[stored_user("u1")])
    journal.close()


def test_only_agents_with_unfinished_turns_are_found(tmp_path: Path) -> None:
    for name, state in (("done/..", "ended"), ("runs", "running"), ("waits \0", "queued")):
        journal = Journal(path_of(tmp_path, "k", name), "k", name)
        journal.write([PutTurn(Turn(id="r", root="r", order=0, state=state))])  # type: ignore[arg-type]
        journal.close()
    (tmp_path / "empty.sqlite3").touch()
    assert sorted(unfinished(tmp_path)) == [("k", "runs"), ("k", "waits \0")]


def test_what_is_no_journal_is_named_and_hides_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = path_of(tmp_path, "k", "n")
    path.write_bytes(b"no database" * 100)
    with pytest.raises(LoadError, match=path.name):
        Journal(path, "k", "n")
    journal = Journal(path_of(tmp_path, "k", "other"), "k", "other")
    journal.write([PutTurn(Turn(id="r", root="r", order=0))])
    journal.close()
    assert unfinished(tmp_path) == [("k", "other")]
    assert caplog.messages == [
        f"{path}: file is not a database; put back a copy, or move it away to begin anew"
    ]


def test_a_copy_under_another_name_is_neither_run_nor_taken_for_another_agent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    original, elsewhere = path_of(tmp_path, "k", "n"), path_of(tmp_path, "k", "other")
    journal = Journal(original, "k", "n")
    journal.write([PutTurn(Turn(id="r", root="r", order=0))])
    journal.close()
    shutil.copy(original, elsewhere)
    assert unfinished(tmp_path) == [("k", "n")]
    why = f"{elsewhere}: a copy of the journal of k/n; move it out of the data folder"
    assert caplog.messages == [why]
    with pytest.raises(LoadError) as caught:
        Journal(elsewhere, "k", "other")
    assert str(caught.value) == why


def test_a_file_that_a_dead_process_had_not_filled_is_filled(tmp_path: Path) -> None:
    path = path_of(tmp_path, "k", "n")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.close()
    assert unfinished(tmp_path) == []
    Journal(path, "k", "n").close()
    Journal(path, "k", "n").close()


def test_a_full_disk_is_told_and_what_was_stored_stays(tmp_path: Path) -> None:
    path = path_of(tmp_path, "k", "n")
    journal = Journal(path, "k", "n")
    journal.write([AddChunk("r1", 0, "kept")])
    journal._db.execute("pragma max_page_count = 1")  # SQLite itself: at most what there is
    with pytest.raises(JournalError) as caught:
        journal.write([AddChunk("r1", n, "x" * 1000) for n in range(1, 20)])
    assert str(caught.value) == f"{path}: database or disk is full; make room on the disk"
    journal.close()
    journal = Journal(path, "k", "n")
    assert journal.read().chunks == {"r1": ["kept"]}
    journal.close()


def test_a_journal_out_of_reach_is_not_a_broken_one(tmp_path: Path) -> None:
    path = path_of(tmp_path, "k", "n")
    path.mkdir()
    for attempt in (lambda: Journal(path, "k", "n"), lambda: unfinished(tmp_path)):
        with pytest.raises(JournalError, match=path.name):
            attempt()


@pytest.mark.parametrize("column", ["error", "body", "message_ids"])
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, column: str) -> None:
    path = path_of(tmp_path, "k", "n")
    journal = Journal(path, "k", "n")
    journal.write([PutTurn(TURN)])
    journal.close()
    db = sqlite3.connect(path)
    with db:
        db.execute(f"update turn set {column} = '{{'")
    db.close()
    journal = Journal(path, "k", "n")
    with pytest.raises(LoadError, match=path.name):
        journal.read()
    journal.close()


def test_one_agent_has_one_owner(tmp_path: Path) -> None:
    path = path_of(tmp_path, "k", "n")
    journal = Journal(path, "k", "n")
    other = sqlite3.connect(path, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("select * from turn")
    other.close()
    journal.close()
