"""A case as sequences of labels that can be held against another run's.

A connection speaks with several voices whose order among each other is not promised; each is a sequence
of its own. What was stored, what the model was asked and how the epilogue's acks were answered are more.
Timing is taken out here: a stream counts the same however much of it came live or as a replay, and what
met a connection is told, so that two which came at different moments need not be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from think_conformance.differences.labels import (
    RESPONSE,
    SUCCESSOR,
    Frame,
    Label,
    label,
    listed,
    part,
    word,
)
from think_conformance.history.op import OBSERVER, History, Record, frame_of
from think_conformance.history.work import Call, calls_of

What = Literal["connect", "probe", "frames", "late ack", "prompts", "stored"]
SPOKEN: tuple[What, ...] = ("connect", "probe", "frames")
"""The voices of a connection: what the agent base sends it, answers to its probes, everything else."""
BASE = frozenset(f"cf_agent_{kind}" for kind in ("identity", "state", "state_error", "mcp_servers"))
"""No order is promised between what the agent base sends and the chat (WIRE-25, WIRE-26)."""
LONGEST = 2000
"""Labels of one voice; further ones are not compared."""
MOST_PARTS = 20
"""Parts of one stored message; likewise."""

State = tuple[object, ...]


@dataclass(slots=True)
class Voice:
    """One sequence. `whole`: nothing due can be missing at its end, as it can where the connection ended
    before the epilogue. `met`: what was going on when it came, None where that cannot be told."""

    labels: list[Label] = field(default_factory=list)
    whole: bool = True
    met: State | None = ()

    def add(self, said: Label) -> None:
        """Append a label, once where repeating it adds nothing."""
        if len(self.labels) < LONGEST and not (said.piece and self.labels and self.labels[-1] == said):
            self.labels.append(said)


Voices = dict[tuple[What, str], Voice]
"""By what they are and whose: the name of a connection, a turn, or a request."""


def voices(history: History) -> Voices:
    """Everything that is compared of a case."""
    case = _Listener(calls_of(history))
    for record in history:
        case.take(record)
    return case.voices


class _Listener:
    """Goes through one case."""

    def __init__(self, calls: list[Call]) -> None:
        self.voices: Voices = {("stored", ""): Voice()}
        self._calls = calls
        for call in calls:
            asked = self.voices.setdefault(("prompts", call.marker.rpartition("/")[2]), Voice())
            for said in _prompt(call):
                asked.add(said)
        self._names: dict[str, str] = {}
        self._successors = 0
        self._sent: set[str] = set()
        self._ended: set[str] = set()
        self._dialled: dict[str, State | None] = {}
        self._replays: dict[tuple[str, str], tuple[int, int]] = {}  # -> index of its label, last seq
        self._phase = ""
        self._acked: set[str] = set()

    def take(self, record: Record) -> None:
        """The next record."""
        payload = record.payload if isinstance(record.payload, dict) else {}
        if record.kind == "epilogue":
            self._phase = str(payload.get("phase"))
        elif record.kind == "ok" and self._phase and "messages" in payload:
            self.voices["stored", ""].labels = list(_stored(record, payload["messages"]))
        elif record.source == "client":
            self._client(record, str(record.ids.get("connection")))

    def _client(self, record: Record, connection: str) -> None:
        if record.kind == "dial":
            self._dialled[connection] = self._going_on(record.index)
        elif record.kind == "open":
            now = self._going_on(record.index)
            met = now if self._dialled.get(connection, now) == now else None
            if record.ids.get("client") == OBSERVER and self._unsettled:
                met = None  # it probes again and again until it hears `idle`, as time goes by
            self.voices |= {(what, connection): Voice(met=met) for what in SPOKEN}
        elif record.kind == "frame-out":
            self._client_said(frame_of(record) or {}, record)
        elif record.kind == "frame-in" and ("frames", connection) in self.voices:
            self._target_said(frame_of(record), record, connection)
        elif record.kind == "close" and not self._phase:
            for what in SPOKEN:
                self.voices.setdefault((what, connection), Voice()).whole = False

    def _client_said(self, frame: Frame, record: Record) -> None:
        name = self._name(frame, "")
        if frame.get("type") == "cf_agent_use_chat_request":
            self._sent.add(name)
        elif self._phase == "idle" and frame.get("type") == "cf_agent_stream_resume_ack":
            self._acked.add(name)
            self.voices.setdefault(("late ack", name), Voice())

    def _target_said(self, sent: Frame | None, record: Record, connection: str) -> None:
        frame = sent or {}
        said = label(sent, self._name(frame, SUCCESSOR), record.index)
        if said.text.startswith("terminal ") and not said.text.startswith("terminal recovering"):
            self._ended.add(said.request)
        observed = record.ids.get("client") == OBSERVER
        if observed and said.request in self._acked:
            voice = self.voices["late ack", said.request]
        else:
            voice = self.voices[_spoken(frame), connection]
        if frame.get("type") == RESPONSE and frame.get("replay") and not frame.get("done"):
            self._replayed(voice, frame, said, connection)
            return
        if frame.get("done"):
            self._replays.pop((connection, said.request), None)
        polled = observed and "probeId" in frame  # as often as time passes until it hears `idle`
        if not (polled and voice.labels[-1:] == [said]):
            voice.add(said)

    def _replayed(self, voice: Voice, frame: Frame, said: Label, connection: str) -> None:
        """A mark that a replay began here, whole where it was completed, then the chunks as if live."""
        key, seq = (connection, said.request), frame.get("seq")
        begun, last = self._replays.get(key, (-1, -1))
        complete = bool(frame.get("replayComplete"))
        if begun < 0 or (isinstance(seq, int) and seq < last):
            begun = len(voice.labels)
            voice.add(Label("replay", said.request, record=said.record))
        self._replays[key] = (begun, seq if isinstance(seq, int) else last)
        if not complete:
            voice.add(said)
            return
        if begun < len(voice.labels):
            voice.labels[begun] = Label("whole replay", said.request, record=voice.labels[begun].record)
        del self._replays[key]

    def _name(self, frame: Frame, prefix: str) -> str:
        """The name of the request a frame is about: its id where a client spoke of it first, else
        successor-1, successor-2, … in order of appearance."""
        ident = frame.get("id")
        if not isinstance(ident, str) or frame.get("type") == "rpc":
            return ""
        if ident not in self._names:
            self._successors += bool(prefix)
            self._names[ident] = f"{prefix}{self._successors}" if prefix else ident
        return self._names[ident]

    @property
    def _unsettled(self) -> bool:
        """Whether more turns were sent than were told to have ended."""
        return len(self._sent) > len(self._ended)

    def _going_on(self, index: int) -> State | None:
        """What a newcomer meets, as far as the kit can know: the turns sent and ended, the model calls and
        how each stands. None while a turn is between its calls, about to end, or about to be put back after
        a crash: when that is over shows only on the inside."""
        calls = [c for c in self._calls if c.index < index]
        stand = [(c.marker.rpartition("/")[2], "open" if c.open_at(index) else c.how) for c in calls]
        if self._unsettled and stand and all(how != "open" for _, how in stand):
            return None
        return (tuple(stand), frozenset(self._sent), len(self._ended))


def _spoken(frame: Frame) -> What:
    """The voice a frame belongs to; what echoes a `probeId` is an answer, whatever it is (WIRE-102)."""
    if frame.get("type") in BASE:
        return "connect"
    return "probe" if "probeId" in frame else "frames"


def _prompt(call: Call) -> Iterator[Label]:
    """A model call, and what it was given, message by message."""
    yield Label("call", record=call.index)
    for message in call.prompt:
        role = word(message.get("role"))
        own = role == "user" and f"[[{call.marker}]]" in str(message.get("content"))
        yield Label("the turn's own user" if own else role, record=call.index)


def _stored(record: Record, messages: object) -> Iterator[Label]:
    """A transcript, message by message, each with the parts it has. Into how many pieces a crash cut a text
    is a matter of time: pieces in a row are one, and nothing is said of steps."""
    for message in listed(messages):
        if isinstance(message, dict):
            parts = (part(p) for p in listed(message.get("parts")))
            pieces = [piece for piece, _ in groupby(p for p in parts if p != "step-start")][:MOST_PARTS]
            yield Label(f"{word(message.get('role'))} [{', '.join(pieces)}]", record=record.index)
