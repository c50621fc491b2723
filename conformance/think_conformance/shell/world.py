"""What the kit puts behind a target: the scripted model with a proxy before it, and the effect ledger."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from think_conformance.shell.ledger import Ledger
from think_conformance.shell.model_script import Scripts
from think_conformance.shell.model_server import ModelServer
from think_conformance.shell.ports import LOOPBACK
from think_conformance.shell.recorder import Recorder
from think_proxy.carriers.embedded import EmbeddedProxy


class World:
    """One for a run. Cases are told apart by their name: in the marker of a prompt, in the key of an
    effect. `seed`: what chance on the model leg is drawn from."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._started = AsyncExitStack()
        self.model = ModelServer()
        self.ledger = Ledger()
        self.model_proxy: EmbeddedProxy

    async def start(self) -> None:
        """All servers listen on loopback; none does when it raises."""
        async with AsyncExitStack() as started:
            started.push_async_callback(self.ledger.close)
            await self.ledger.start()
            started.push_async_callback(self.model.close)
            await self.model.start()
            self.model_proxy = EmbeddedProxy(
                self.model.address, journal=_nobody, process=None, seed=self._seed, leg="model"
            )
            started.push_async_callback(self.model_proxy.close)
            await self.model_proxy.start()
            self._started = started.pop_all()

    async def close(self) -> None:
        """Bounded."""
        await self._started.aclose()

    @property
    def environment(self) -> dict[str, str]:
        """Where a target finds this world (the contract of the target file)."""
        return {
            "THINK_MODEL_URL": f"http://{LOOPBACK}:{self.model_proxy.port}/v1",
            "THINK_EFFECTS_URL": self.ledger.url,
        }

    @staticmethod
    def model_scope(case: str) -> str:
        """What tells a case's prompts from all others on the model leg."""
        return f"[[{case}/"

    def load(self, case: str, scripts: Scripts, recorder: Recorder) -> None:
        """A case begins."""
        self.model.load(case, scripts, recorder)
        self.ledger.load(case, recorder)

    def unload(self, case: str) -> None:
        """A case is over: what still comes for it belongs to nobody."""
        self.model.unload(case)
        self.ledger.unload(case)


def _nobody(kind: str, ids: dict[str, Any], payload: Any) -> None:
    """What the proxy notes outside any case concerns no history."""
