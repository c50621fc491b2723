"""Files that a user named."""

from __future__ import annotations

from pathlib import Path

import pytest

from think_conformance.errors import UsageError
from think_conformance.given import text_of


def test_a_file_is_its_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("é\n")
    assert text_of(tmp_path / "x", "plan") == "é\n"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/nowhere/x", "plan /nowhere/x cannot be read: No such file or directory"),
        ("/", "plan / cannot be read: Is a directory"),
        ("/dev/zero", "plan /dev/zero cannot be read: it has more than 16000000 bytes"),
    ],
)
def test_what_has_no_text_or_no_end_is_one_line(path: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        text_of(Path(path), "plan")
    assert str(caught.value) == says


def test_what_is_no_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"plan .*x cannot be read: .*utf-8"):
        text_of(tmp_path / "x", "plan")
