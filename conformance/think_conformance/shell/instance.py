"""A running target: its process or the service behind its URL, the proxy in front of it, and the cases that
use it now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from think_conformance.shell.client import Client, Endpoint
from think_conformance.shell.ports import LOOPBACK
from think_conformance.shell.process import TargetNotReady, TargetProcess
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.service import RunningService
from think_conformance.targets.contract import Target
from think_proxy.carriers.abilities import EMBEDDED
from think_proxy.carriers.choice import PROXIES
from think_proxy.carriers.proxy import Proxy
from think_proxy.plan import ProcessAction


class Instance:
    """One process of a target started by command, of which cases that kill have one of their own and the
    others share one; or the one service behind a URL. What happens to the process is recorded in every case
    that has joined."""

    def __init__(
        self,
        target: Target,
        data_dir: Path,
        log: Path,
        env: dict[str, str],
        args: tuple[str, ...],
        seed: int,
        *,
        carrier: str = EMBEDDED,
    ) -> None:
        self.target = target
        self._seed = seed
        self._carrier = carrier
        self._recorders: list[Recorder] = []
        self.process: TargetProcess | RunningService
        if target.kind == "url":
            self.process = RunningService(target)
        else:
            self.process = TargetProcess(
                target, data_dir=data_dir, log_path=log, extra_env=env, record=self._record, extra_args=args
            )
        self.proxy: Proxy

    async def start(self) -> None:
        """Raises TargetNotReady, also for a server that opens no WebSocket where its target file says.
        Leaves no process when it raises."""
        await self.process.start()
        self.proxy = self._made_proxy()
        try:
            await self.proxy.start()
            await self._say_hello()
        except BaseException:
            await self.stop()
            raise

    def _made_proxy(self) -> Proxy:
        if isinstance(self.process, RunningService):
            upstream, tls, control = self.process.address, self.process.tls, None
        else:
            upstream, tls, control = (LOOPBACK, self.process.port), None, self._on_wire
        made = PROXIES[self._carrier]
        return made(upstream, journal=self._journal, process=control, seed=self._seed, tls=tls)

    async def _say_hello(self) -> None:
        """One connection before all cases: every one of them would only find out the same. A service is
        dialled directly, since a proxy cannot tell a client why it does not reach it."""
        direct = self.target.url
        endpoint = Endpoint.of(self.target, direct, "hello") if direct else self.endpoint("hello")
        client = Client("hello", lambda: endpoint, Recorder(None), lambda: self.epoch)
        if not await client.connect(follow=False):
            where = f"{direct or ''}{self.target.path_of('NAME')}"
            keys = "`url`, `agent`, `path`, `headers`, `query` and `tls`" if direct else "`agent` and `path`"
            raise TargetNotReady(
                f"the target opens no WebSocket at {where} ({client.refusal}); a target file says where it "
                f"is: {keys}"
            )
        await client.close()

    async def ensure_running(self) -> None:
        """See `TargetProcess.ensure_running`: for everyone who shares this instance, at any time."""
        await self.process.ensure_running()

    async def stop(self) -> None:
        """Bounded; leaves no process."""
        try:
            await self.proxy.close()
        finally:
            await self.process.stop()

    @property
    def epoch(self) -> int:
        return self.process.epoch

    @property
    def alive(self) -> bool:
        return self.process.alive

    def endpoint(self, name: str) -> Endpoint:
        """Where clients find the agent `name`: behind the proxy."""
        return Endpoint.of(self.target, f"{LOOPBACK}:{self.proxy.port}", name)

    def scope(self, name: str) -> str:
        """What the proxy takes for the traffic of the agent `name`."""
        return self.target.path_of(name)

    def join(self, recorder: Recorder) -> None:
        """A case starts to use this instance."""
        self._recorders.append(recorder)
        recorder.append(
            "process", "process", {"epoch": self.epoch}, {"action": "ready", "pid": self.process.pid}
        )

    def leave(self, recorder: Recorder) -> None:
        """A case no longer uses it."""
        self._recorders.remove(recorder)

    async def perform(self, action: ProcessAction) -> None:
        """One process action; returns when it is done (restart: when the target is ready again)."""
        assert isinstance(self.process, TargetProcess), "a plan that needs one is out of reach of a URL"
        match action:
            case "kill":
                await self.process.kill()
            case "term":
                await self.process.term()
            case "pause":
                await self.process.pause()
            case "continue":
                await self.process.cont()
            case "restart":
                await self.process.restart()

    async def _on_wire(self, action: ProcessAction, scope: str) -> None:
        await self.perform(action)

    def _record(self, *record: Any) -> None:
        for recorder in self._recorders:
            recorder.append(*record)

    def _journal(self, kind: str, ids: dict[str, Any], payload: Any) -> None:
        """What the proxy notes outside any case (connections of nobody) concerns no history."""
