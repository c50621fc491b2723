"""What the cases share: packages for all, one driver, one reference and one model per worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from javascript import PATIENCE_S, Driver, Missing, chromium, install
from stage import Stage

from think_conformance.shell.instance import Instance
from think_conformance.shell.world import World
from think_conformance.targets.contract import load_target

SEED = 1
Staged = Callable[..., AbstractAsyncContextManager[Stage]]


def pytest_sessionstart() -> None:
    """Once, before any worker starts: what is missing is told in one line."""
    try:
        chromium()
        install()
    except Missing as missing:
        raise pytest.UsageError(str(missing)) from None


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def driver() -> AsyncIterator[Driver]:
    async with Driver(install()) as driver:
        yield driver


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world() -> AsyncIterator[World]:
    world = World(SEED)
    await world.start()
    yield world
    await world.close()


@asynccontextmanager
async def running(world: World, folder: Path, *args: str) -> AsyncIterator[Instance]:
    """A reference of its own."""
    (folder / "data").mkdir()
    target = msgspec.structs.replace(load_target("reference"), ready_timeout_s=PATIENCE_S)
    instance = Instance(target, folder / "data", folder / "target.log", world.environment, args, SEED)
    await instance.start()
    try:
        yield instance
    finally:
        await instance.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Instance]:
    async with running(world, tmp_path_factory.mktemp("reference")) as instance:
        yield instance


@pytest.fixture
def alone(driver: Driver, world: World, tmp_path: Path) -> Staged:
    """A case on a reference of its own, which is yielded too; `args` go to its command line."""

    @asynccontextmanager
    async def stage(turns: dict[str, Any], *args: str) -> AsyncIterator[tuple[Stage, Instance]]:
        async with (
            running(world, tmp_path, *args) as instance,
            Stage(driver, world, instance, turns, []) as case,
        ):
            yield case, instance

    return stage


@pytest.fixture
def staged(driver: Driver, world: World, shared: Instance) -> Staged:
    """A case on the reference that all share."""

    def stage(turns: dict[str, Any], faults: list[dict[str, Any]] | None = None) -> Stage:
        return Stage(driver, world, shared, turns, faults or [])

    return stage
