"""The list of what no defect proves yet: ids with a row, each with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from think_conformance.catalogue import model


def test_the_list_as_it_is_names_rows_with_reasons() -> None:
    assert model.unproven().keys() <= model.requirements().keys()
    assert all(model.unproven().values())


@pytest.mark.parametrize("line", ["NO-SUCH-ID why", "KIT-01", "KIT-01   ", "KIT-01 why\nKIT-01 why"])
def test_a_bad_line_is_named(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model.requirements()
    (tmp_path / "unproven.txt").write_text(f"# a comment\n\n{line}\n")
    monkeypatch.setattr(model, "files", lambda _: tmp_path)
    with pytest.raises(ValueError, match=r"unproven\.txt:[34]: `(NO-SUCH-ID|KIT-01)`"):
        model.unproven.__wrapped__()
