"""The reference at scale, and beside Cloudflare's Think, against their limits; exit 1 when one is missed.
`tox -e bench` prints them; the second needs Node.js and npm, or a filled cache.

All targets get the same clients and the same model, one after the other in one run, each more than once;
what counts is the slowest of the reference against the fastest of the other. Wall time is also that of the
disk and of the scheduler, so the processor time per chunk stands beside it. By default the reference waits
for no disk (it survives the death of the process, not the loss of power); with `--durable` it does.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import bench_load
from bench_load import Load

from think_conformance.shell.prepare import prepare
from think_conformance.shell.process import TargetProcess
from think_conformance.targets.contract import Target, load_target

AGENTS, CHUNKS, TURNS = 20, 50, 3
ROUNDS = 2
MANY, LONG = 200, 10_000
THINK = "cloudflare-think@0.23.0"

AT_LEAST = 5.0
"""Times the turns per second of Cloudflare's Think."""

AGENT_MB = 1.0
"""What an agent that streams may take, at most, with its socket and its model call."""

LEFT_MB = 0.1
"""What may remain of one that left memory, its socket included. The process keeps the room for the next
agents, so this is by how much it grows when as many others come."""

LONG_S = 10.0
UNLOAD_S = 1.0


class Running(NamedTuple):
    """A target that runs, for one model. `group`: its process group."""

    target: Target
    port: int
    group: int

    async def agents(self, count: int, first: int = 0) -> list[bench_load.Chat]:
        """A socket to each of so many agents."""
        paths = [self.target.path_of(f"agent-{n}") for n in range(first, first + count)]
        return [await bench_load.connect(self.port, path) for path in paths]

    @property
    def memory_mb(self) -> float:
        """Resident memory."""
        return bench_load.memory_mb(self.group)


@asynccontextmanager
async def running(name: str, chunks: int, *args: str) -> AsyncIterator[Running]:
    """The target with more arguments, its model answering with so many chunks."""
    target = load_target(name)
    await prepare(target, print)
    with tempfile.TemporaryDirectory() as folder:
        async with bench_load.model(chunks) as url:
            process = TargetProcess(
                target,
                data_dir=Path(folder) / "data",
                log_path=Path(folder) / "log",
                extra_env={"THINK_MODEL_URL": url, "THINK_EFFECTS_URL": url},
                record=lambda *_: None,
                extra_args=args,
            )
            await process.start()
            assert process.pid is not None
            try:
                yield Running(target, process.port, process.pid)
            finally:
                await process.kill()
                await process.stop()


async def side_by_side(name: str, turns: int, *args: str) -> Load:
    """AGENTS agents at once, after one turn each that warms up."""
    async with running(name, CHUNKS, *args) as target:
        started_mb = target.memory_mb
        chats = await target.agents(AGENTS)
        await bench_load.play(chats, 1, CHUNKS, target.group)
        load = await bench_load.play(chats, turns, CHUNKS, target.group)
        print(
            f"{' '.join((name, *args)):26} {load.turns_per_s:8.1f} {load.chunk_us:10.0f}"
            f" {started_mb:8.0f} {target.memory_mb:8.0f} {load.busy:10.0%}",
            flush=True,
        )
        for chat in chats:
            chat.close()
        return load


async def compared(turns: int) -> bool:
    """The table, and whether the reference is fast enough."""
    print(f"{AGENTS} agents at once, {turns} turns each, {CHUNKS} chunks a turn")
    print(f"{'':26} {'turns/s':>8} {'µs/chunk':>10} {'MB idle':>8} {'MB':>8} {'generator':>10}")
    ours: list[Load] = []
    durable: list[Load] = []
    theirs: list[Load] = []
    for _ in range(ROUNDS):
        ours.append(await side_by_side("reference", turns))
        durable.append(await side_by_side("reference", turns, "--durable"))
        theirs.append(await side_by_side(THINK, turns))
    ours.append(await side_by_side("reference", turns))
    ratio = times_faster(ours, theirs)
    cost = min(load.chunk_us for load in theirs) / max(load.chunk_us for load in ours)
    print(f"reference : {THINK}, turns per second {ratio:6.1f}   at least {AT_LEAST:g}")
    print(f"  with --durable {times_faster(durable, theirs):.1f}, processor time {cost:.1f}")
    return ratio >= AT_LEAST


def times_faster(ours: list[Load], theirs: list[Load]) -> float:
    """Turns per second, the slowest of ours against the fastest of theirs."""
    return min(load.turns_per_s for load in ours) / max(load.turns_per_s for load in theirs)


async def long_turn() -> bool:
    """One turn of LONG chunks."""
    async with running("reference", LONG) as target:
        (chat,) = await target.agents(1)
        load = await bench_load.play([chat], 1, LONG, target.group)
        chat.close()
    print(f"a turn of {LONG} chunks (s)            {load.wall_s:6.1f}   limit {LONG_S:g}")
    return load.wall_s <= LONG_S


async def many_agents() -> bool:
    """MANY agents stream at once and leave memory, their sockets stay; as many others come, then the first
    go on."""
    async with running("reference", CHUNKS, "--unload-after", str(UNLOAD_S)) as target:
        started_mb = target.memory_mb
        chats = await target.agents(MANY)
        load = await bench_load.play(chats, 1, CHUNKS, target.group)
        first_mb = target.memory_mb
        await asyncio.sleep(3 * UNLOAD_S)
        others = await target.agents(MANY, first=MANY)
        await bench_load.play(others, 1, CHUNKS, target.group)
        left_mb = (target.memory_mb - first_mb) / MANY
        await asyncio.sleep(3 * UNLOAD_S)
        back = await bench_load.play(chats, 1, CHUNKS, target.group)
        for chat in (*chats, *others):
            chat.close()
    print(f"{MANY} agents at once, {CHUNKS} chunks (turns/s) {load.turns_per_s:6.1f}")
    print(f"  after they left memory (turns/s)   {back.turns_per_s:6.1f}")
    each_mb = (first_mb - started_mb) / MANY
    print(f"  memory of each (MB)                {each_mb:6.2f}   limit {AGENT_MB:g}")
    print(f"  memory of each that left (MB)      {left_mb:6.2f}   limit {LEFT_MB:g}")
    return each_mb <= AGENT_MB and left_mb <= LEFT_MB


async def measured(turns: int) -> int:
    good = [await compared(turns), await long_turn(), await many_agents()]
    return 0 if all(good) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="turns of each agent in the comparison")
    return asyncio.run(measured(parser.parse_args().turns))


if __name__ == "__main__":
    sys.exit(main())
