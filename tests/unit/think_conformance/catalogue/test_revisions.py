"""Frozen sets of requirements."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files

import pytest

from think_conformance.catalogue.model import requirements
from think_conformance.catalogue.revisions import revision, revisions, scores
from think_conformance.errors import Unknown

FROZEN = {1: "fe23e04307e93b0fea60885c79b0d57cfa86f972d21f0178b20aa91cb070e7fe"}
"""The digest of each revision's file: what was published is not changed, a new revision is added."""


def test_a_revision_that_was_published_is_what_it_was() -> None:
    found = {}
    for number in revisions():
        content = files("think_conformance.catalogue").joinpath("sets", f"{number}.txt").read_bytes()
        found[number] = sha256(content).hexdigest()
    assert found == FROZEN


def test_every_id_of_a_revision_still_has_a_row() -> None:
    for number in revisions():
        assert len(revision(number)) >= 44
        assert revision(number) <= requirements().keys()


def test_what_is_newer_than_a_revision_does_not_score_under_it() -> None:
    newer = requirements().keys() - revision(1)
    assert newer
    assert not any(scores(ident, 1) for ident in newer)
    assert all(scores(ident, None) for ident in newer)
    assert scores("TURN-150", 1)


def test_an_unknown_revision_is_answered_with_those_there_are() -> None:
    with pytest.raises(Unknown, match="unknown revision `7`"):
        revision(7)
