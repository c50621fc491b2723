"""What every agent tells a connection besides the chat: identity, shared state, MCP registry
(wire protocol section 2)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from think_conformance.wire.frames import AgentState, Identity, McpServers, StateError
from think_reference.core.bounds import too_deep
from think_reference.core.effects import Broadcast, Effect, Persist, PutMeta, Send

NO_MCP = McpServers(mcp={"prompts": [], "resources": [], "servers": {}, "tools": []})


class Base:
    """`meta`: the named values of the journal. There is no state until a client sets one."""

    def __init__(self, name: str, kind: str, meta: dict[str, Any]) -> None:
        self._name, self._kind = name, kind
        self._state: Any = meta.get("state", UNSET)

    def greet(self, conn: int) -> list[Effect]:
        """The frames for a newcomer (WIRE-20 ... WIRE-22)."""
        has_state = self._state is not UNSET
        identity = Send(conn, Identity(name=self._name, agent=self._kind, state_follows=has_state))
        state = [Send(conn, AgentState(state=self._state))] if has_state else []
        return [identity, *state, Send(conn, NO_MCP)]

    def set_state(self, conn: int, state: Any) -> list[Effect]:
        """Take a client's state and tell the others (WIRE-23, WIRE-24)."""
        if too_deep(state):
            return [Send(conn, StateError(error="State update rejected"))]
        self._state = state
        others = Broadcast(AgentState(state=state), frozenset({conn}))
        return [Persist((PutMeta("state", state),)), others]
