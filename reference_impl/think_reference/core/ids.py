"""Names that are derived, never drawn: a second crash finds the same successor, not a second one."""

from __future__ import annotations

from uuid import UUID, uuid5

_SPACE = UUID("5f0a6c1e-8a55-5c0e-9d6f-2f8f1c1f7a10")


def run_id(agent: str, root: str, run: int, clash: int = 0) -> str:
    """The request id of a recovery run; `clash` as below, since a client can derive it too."""
    return _derived("run", agent, root, run, clash)


def answer_id(agent: str, root: str, run: int, clash: int = 0) -> str:
    """The message id of the answer that this run begins; `clash` counts the ids found taken."""
    return _derived("answer", agent, root, run, clash)


def _derived(*names: str | int) -> str:
    return str(uuid5(_SPACE, "\n".join(f"{len(str(name))}:{name}" for name in names)))
