"""Whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from think_conformance.shell.files import write_whole


def test_a_file_is_replaced_and_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("old and longer")
    write_whole(tmp_path / "x.json", b"new")
    assert (tmp_path / "x.json").read_bytes() == b"new"
    assert (tmp_path / "x.json").stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("old")
    (tmp_path / ".x.json.part").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "x.json", b"new")
    assert (tmp_path / "x.json").read_text() == "old"
