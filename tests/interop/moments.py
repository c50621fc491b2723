"""The moments at which the line between client and server fails, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from javascript import PATIENCE_S

PROBE = {"direction": "up", "json": {"type": "cf_agent_stream_resume_request"}}
ACK = {"direction": "up", "json": {"type": "cf_agent_stream_resume_ack"}}
OFFER = {"direction": "down", "json": {"type": "cf_agent_stream_resuming"}}
GATE = {"gate": "go"}
HELD_S = 2 * PATIENCE_S
"""How long a fault holds the line, seconds: until it is healed."""


def words(first: int, last: int) -> list[dict[str, str]]:
    """So many deltas of the model."""
    return [{"text": f"w{number} "} for number in range(first, last + 1)]


def response(**json: Any) -> dict[str, Any]:
    """A frame of an answer."""
    return {"direction": "down", "json": {"type": "cf_agent_use_chat_response", **json}}


def chunk(kind: str, **when: Any) -> dict[str, Any]:
    """A chunk of an answer."""
    return {**response(), "nested": {"field": "body", "json": {"type": kind}}, **when}


AWAY: dict[str, Any] = {"id": "away", "when": {"client": "a"}, "do": [{"refuse": True}], "times": 1000}
"""A fault: the client comes back in vain."""


def held(name: str, when: dict[str, Any]) -> dict[str, Any]:
    """A fault: this frame waits until all is healed, with all behind it."""
    return {
        "id": name,
        "when": {"client": "a", **when},
        "do": [{"delay": {"for": HELD_S}}],
        "within_s": HELD_S,
    }


OUTPUT: list[list[Any]] = [[*words(1, 4), GATE, *words(5, 6), "done"]]


@dataclass(frozen=True)
class Moment:
    """`calls`: what the model says, holding at GATE until the fault has struck. `when`: the frame that is
    struck. `after`: it is let through first. `lost_before`: the connection before is lost in mid-stream.
    `queued`: a turn of somebody else runs."""

    name: str
    when: dict[str, Any]
    calls: list[list[Any]] = field(default_factory=lambda: OUTPUT)
    says: str = "w1 w2 w3 w4 w5 w6 "
    after: bool = False
    lost_before: bool = False
    queued: bool = False
    effects: int = 0

    def faults(self, do: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The faults of the plan; the one called `struck` does that."""
        lost = {"id": "lost-before", "when": chunk("text-delta", nth=3), "do": [{"cut": "reset"}]}
        when = {"client": "a", **self.when, **({"connection": 2} if self.lost_before else {})}
        return [lost] * self.lost_before + [
            {"id": "struck", "when": when, "do": do, "after": self.after, "within_s": HELD_S}
        ]


TOOL = {"tool": "slow_effect", "args": {"key": "{case}/e", "ms": 200}}

MOMENTS = [
    Moment("before-the-first-token", chunk("start"), [[GATE, *words(1, 3), "done"]], says="w1 w2 w3 "),
    Moment("during-output", chunk("text-delta", nth=3)),
    Moment(
        "during-a-tool-call",
        chunk("tool-input-available"),
        [[TOOL, "done"], [GATE, *words(1, 3), "done"]],
        says="w1 w2 w3 ",
        after=True,
        effects=1,
    ),
    Moment(
        "in-the-queue",
        chunk("text-delta"),
        [[*words(1, 3), "done"]],
        says="ahead |w1 w2 w3 ",
        queued=True,
    ),
    Moment(
        "between-the-last-token-and-the-end", response(done=True), [[*words(1, 3), "done"]], says="w1 w2 w3 "
    ),
    Moment("at-the-resume-offer", OFFER, lost_before=True),
    Moment("at-the-resume-ack", ACK, lost_before=True),
    Moment("during-the-replay", response(replay=True), lost_before=True),
]

AHEAD = {"t0": [[{"gate": "accepted"}, {"text": "ahead "}, GATE, "done"]]}
"""The turn that runs while another waits; it speaks when the other is known to wait, which shows on the
line that is struck. A reset may throw away what has not been read, a request that was just sent too."""

FAULTS: dict[str, list[dict[str, Any]]] = {
    "cut": [{"cut": "reset"}],
    "stall": [{"stall": {"for": HELD_S}}],
    "half-open": [{"cut": "blackhole"}],
}
"""What stalls goes on when it is healed; what is half open is reset then."""
