"""Recipes: which versions there are, and where each is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from think_conformance.errors import Unknown
from think_conformance.targets.cloudflare_think import recipe as module
from think_conformance.targets.cloudflare_think.recipe import Recipe, versions
from think_conformance.targets.contract import load_target, packaged_targets


def test_every_version_has_a_target_of_its_name_and_every_target_a_recipe() -> None:
    named = {name for name in packaged_targets() if name.startswith("cloudflare-think@")}
    assert named == {f"cloudflare-think@{version}" for version in versions()}
    for name in named:
        target = load_target(name)
        version = name.partition("@")[2]
        assert target.name == name
        assert target.prepare[-2:] == ["install", version]
        assert target.start is not None
        assert target.start[-2:] == ["serve", version]


def test_a_version_without_a_recipe_is_named_with_the_nearest() -> None:
    with pytest.raises(
        Unknown, match=r"unknown version of cloudflare-think `0\.23`; did you mean `0\.23\.0`"
    ):
        Recipe.of("0.23")


@pytest.mark.parametrize(
    ("environment", "kept_in"),
    [
        ({"THINK_CONFORMANCE_CACHE": "/a/b", "XDG_CACHE_HOME": "/x"}, Path("/a/b")),
        ({"XDG_CACHE_HOME": "/x"}, Path("/x/think-conformance")),
        ({}, Path.home() / ".cache/think-conformance"),
    ],
)
def test_where_the_cache_is(environment: dict[str, str], kept_in: Path) -> None:
    assert Recipe.of("0.23.0", environment).home.parent == kept_in


def test_another_lock_and_another_worker_are_kept_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes, worker = tmp_path / "recipes", tmp_path / "worker"
    (recipes / "1").mkdir(parents=True)
    worker.mkdir()
    lock, source = recipes / "1" / "package-lock.json", worker / "agent.ts"
    lock.write_text("one")
    source.write_text("one")
    monkeypatch.setattr(module, "RECIPES", recipes)
    monkeypatch.setattr(module, "WORKER", worker)
    first = Recipe.of("1", {})
    bundle = first.bundle
    source.write_text("two")
    assert (first.bundle.parent, first.bundle != bundle) == (bundle.parent, True)
    lock.write_text("two")
    assert Recipe.of("1", {}).home != first.home
