"""Order, limits and waiting of the recorder; its file, written and read back."""

from __future__ import annotations

import asyncio
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from think_conformance.errors import UsageError
from think_conformance.history.op import Record
from think_conformance.shell import recorder as module
from think_conformance.shell.recorder import Recorder, read_history


def is_info(record: Record) -> bool:
    return record.kind == "info"


def test_what_is_appended_is_on_disk_at_once_and_reads_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    recorder = Recorder(path, clock=iter([1.5, 2.5]).__next__)
    recorder.append("run", "invoke", {"operation": 0}, {"do": "send", "text": "é"})
    recorder.append("run", "heal")
    assert read_history(path) == recorder.records
    assert [r.at for r in recorder.records] == [1.5, 2.5]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    recorder.close()


def test_threads_get_indexes_without_gaps_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    recorder = Recorder(path)

    def work(name: str) -> None:
        for n in range(200):
            recorder.append("run", "info", {"by": name}, {"n": n})

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    assert [r.index for r in recorder.records] == list(range(800))
    assert read_history(path) == recorder.records
    assert [r.payload["n"] for r in recorder.records if r.ids["by"] == "c"] == list(range(200))


def test_a_payload_over_the_limit_is_replaced_by_its_size(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history.jsonl")
    big = {"text": "x" * module.PAYLOAD_LIMIT}
    record = recorder.append("client", "frame-in", {}, big)
    assert record.payload == {"truncated": True, "size": module.PAYLOAD_LIMIT + len('{"text":""}')}
    assert read_history(tmp_path / "history.jsonl") == recorder.records
    recorder.close()


def test_a_peer_that_never_ends_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HISTORY_LIMIT", 3500)
    recorder = Recorder(None)
    payloads = [recorder.append("client", "frame-in", {}, {"text": "x" * 1000}).payload for _ in range(3)]
    assert [set(payload) for payload in payloads] == [{"text"}, {"text"}, {"truncated", "size"}]


def test_what_is_nested_too_deep_to_be_written_is_replaced(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history.jsonl")
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert recorder.append("client", "frame-in", {}, deep).payload["truncated"] is True
    assert read_history(tmp_path / "history.jsonl") == recorder.records
    recorder.close()


async def test_waiting_sees_the_past_and_the_future_and_counts() -> None:
    recorder = Recorder(None)
    first = recorder.append("run", "info")
    assert await recorder.wait_for(is_info, 0) == first
    waiting = asyncio.create_task(recorder.wait_for(is_info, 5, nth=3))
    await asyncio.sleep(0)
    recorder.append("run", "info")
    recorder.append("run", "heal")
    thread = threading.Thread(target=recorder.append, args=("run", "info"))
    thread.start()
    third = await waiting
    thread.join()
    assert third is not None
    assert third.index == 3


async def test_waiting_ends_with_its_time_and_leaves_nothing_behind() -> None:
    recorder = Recorder(None)
    recorder.append("run", "heal")
    assert await recorder.wait_for(is_info, 0.01) is None
    assert recorder._wakers == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('{"index":0,"at":0,"source":"run","kind":"heal"}\nnot json\n', "line 2: no record"),
        ('{"index":0,"at":0,"source":"run","kind":"nonsense"}\n', "line 1: no record"),
        ('{"index":1,"at":0,"source":"run","kind":"heal"}\n', "line 1: index 1 where 0 is due"),
        ("[" * 5000 + "\n", "line 1: no record"),
    ],
)
def test_a_broken_history_is_told_by_file_and_line(tmp_path: Path, lines: str, told: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(lines)
    with pytest.raises(UsageError, match=told) as caught:
        read_history(path)
    assert str(caught.value).startswith(str(path))


def test_files_that_cannot_be_opened_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose another output folder"):
        Recorder(tmp_path / "missing" / "history.jsonl")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_history(tmp_path / "none")


def test_a_full_disk_is_told_in_one_line_and_closes_quietly() -> None:
    recorder = Recorder(Path("/dev/full"))
    with pytest.raises(UsageError, match="/dev/full cannot be written: No space left on device"):
        recorder.append("run", "case", {}, {})
    recorder.close()


def test_half_a_surrogate_pair_is_written_and_read_back_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    recorder = Recorder(path)
    recorder.append("client", "frame-in", {}, {"frame": {"type": "x", "delta": "\ud83c"}})
    recorder.append("effects", "effect", {"key": "\udf0d"}, {"key": "\udf0d"})
    recorder.close()
    assert read_history(path) == recorder.records


def test_a_flood_of_tiny_records_fills_the_history_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HISTORY_LIMIT", 10_000)
    recorder = Recorder(None)
    while not recorder.full:
        recorder.append("client", "frame-in", {}, None)
    assert len(recorder.records) < 20
