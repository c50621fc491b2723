"""What the kit puts behind a target: the scripted model with a proxy before it, and the effect ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from think_conformance.errors import UsageError
from think_conformance.shell.ledger import Ledger
from think_conformance.shell.model_script import Scripts
from think_conformance.shell.model_server import ModelServer
from think_conformance.shell.ports import LOOPBACK
from think_conformance.shell.recorder import Recorder
from think_proxy.carriers.abilities import EMBEDDED
from think_proxy.carriers.choice import PROXIES
from think_proxy.carriers.proxy import Proxy

ANY = (LOOPBACK, 0)


class World:
    """One for a run. Cases are told apart by their name: in the marker of a prompt, in the key of an
    effect. `seed`: what chance on the model leg is drawn from. `model_at`, `effects_at`: host and port where
    a service that runs already finds them; else any on loopback. `carrier` carries the model leg."""

    def __init__(
        self,
        seed: int,
        model_at: tuple[str, int] = ANY,
        effects_at: tuple[str, int] = ANY,
        *,
        carrier: str = EMBEDDED,
    ) -> None:
        self._seed = seed
        self._carrier = carrier
        self._model_at = model_at
        self._effects_at = effects_at
        self._started = AsyncExitStack()
        self.model = ModelServer()
        self.ledger = Ledger()
        self.model_proxy: Proxy

    async def start(self) -> None:
        """All servers listen, on loopback unless told otherwise; none does when it raises. UsageError when an
        address that was given cannot be had."""
        async with AsyncExitStack() as started:
            started.push_async_callback(self.ledger.close)
            with _given(self._effects_at):
                await self.ledger.start(*self._effects_at)
            started.push_async_callback(self.model.close)
            await self.model.start()
            host, port = self._model_at
            self.model_proxy = PROXIES[self._carrier](
                self.model.address,
                journal=_nobody,
                process=None,
                seed=self._seed,
                host=host,
                port=port,
                leg="model",
            )
            started.push_async_callback(self.model_proxy.close)
            with _given(self._model_at):
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


@contextmanager
def _given(where: tuple[str, int]) -> Iterator[None]:
    """Who chose an address is told when it cannot be had."""
    try:
        yield
    except OSError as error:
        if where == ANY:
            raise
        host, port = where
        raise UsageError(f"cannot listen on {host} port {port}: {error.strerror}") from None
