"""An agent of the reference with a journal in memory and recorded connections: crash it, look at it."""

from __future__ import annotations

from typing import Any

from think_conformance.wire.codec import dumps, loads
from think_conformance.wire.frames import (
    CancelRequest,
    ChatClear,
    ChatRequest,
    ChatResponse,
    Message,
    RequestInit,
    ResumeAck,
    ResumeRequest,
    ServerFrame,
)
from think_reference.agent import Think
from think_reference.core.agent import Agent
from think_reference.core.effects import (
    AbortWork,
    AddChunk,
    Broadcast,
    CallModel,
    CancelTimer,
    ClearChat,
    DeleteMessage,
    DropChunks,
    DropMeta,
    Effect,
    InsertMessage,
    Persist,
    PutMeta,
    PutTurn,
    Replay,
    Rows,
    RunTool,
    Send,
    SetTimer,
    UpdateMessage,
    Work,
    Write,
)
from think_reference.core.events import (
    Connected,
    Disconnected,
    Event,
    ModelDelta,
    ModelFailed,
    ModelFinished,
    ModelToolCall,
    ModelToolInput,
    Received,
    TimerFired,
    ToolRaised,
    ToolReturned,
)
from think_reference.core.policies import Policies
from think_reference.core.stream import replay_frame

NAME = "n"
KIND = "conformance-agent"


def user(message_id: str, text: str = "") -> Message:
    """A user message as a client sends it."""
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text or message_id}]}


def stored_user(message_id: str, text: str = "") -> Message:
    """The same message as the server keeps it (WIRE-57)."""
    return {**user(message_id, text), "metadata": {"channel": "web"}}


def assistant(message_id: str, text: str, state: str = "done") -> Message:
    """A one-step answer."""
    return {
        "id": message_id,
        "role": "assistant",
        "parts": [{"type": "step-start"}, {"type": "text", "text": text, "state": state}],
    }


def request(request_id: str, *messages: Message, **body: Any) -> ChatRequest:
    """A chat request with these messages."""
    init = RequestInit(method="POST", body=dumps({"messages": list(messages), **body}))
    return ChatRequest(id=request_id, init=init)


def applied(rows: Rows, write: Write) -> Rows:
    """The rows after one write: what a journal must do, said again in plain lists."""
    turns = {t.id: t for t in rows.turns}
    chunks = {k: list(v) for k, v in rows.chunks.items()}
    messages, meta = list(rows.messages), dict(rows.meta)
    match write:
        case PutTurn(turn):
            turns[turn.id] = turn
        case AddChunk(request_id, seq, body):
            log = chunks.setdefault(request_id, [])
            assert seq == len(log), "a chunk log has no gap"
            log.append(body)
        case DropChunks(request_id):
            chunks.pop(request_id, None)
        case InsertMessage(position, message):
            assert position <= len(messages)
            assert message["id"] not in {m["id"] for m in messages}
            messages.insert(position, message)
        case UpdateMessage(message):
            messages[[m["id"] for m in messages].index(message["id"])] = message
        case DeleteMessage(position):
            del messages[position]
        case PutMeta(key, value):
            meta[key] = value
        case DropMeta(key):
            meta.pop(key, None)
        case ClearChat():
            turns, chunks, messages = {}, {}, []
    return Rows(list(turns.values()), chunks, messages, meta)


class World:
    """`frames` by connection, everything it was ever sent; `calls` open model calls and `tools` running
    tools, by request id; `called` and `ran` are all of them, also those of earlier lives."""

    def __init__(
        self, application: type[Think] = Think, *, policies: Policies | None = None, rows: Rows | None = None
    ) -> None:
        self._application, self._policies = application, policies
        self.rows = rows or Rows()
        self.history: list[Rows] = [self.rows]
        self.frames: dict[int, list[ServerFrame]] = {}
        self.gone: dict[int, list[ServerFrame]] = {}
        self.calls: dict[str, CallModel] = {}
        self.called: list[CallModel] = []
        self.tools: dict[str, RunTool] = {}
        self.ran: list[RunTool] = []
        self.timers: dict[str, float] = {}
        self.now = 1000.0
        self._boot()

    def _boot(self) -> None:
        self.agent = Agent(NAME, KIND, self._application, self._policies)
        self.effects = self.agent.load(self.rows, self.now)
        self._perform(self.effects)

    def crash(self, *, after_s: float = 1.0) -> list[Effect]:
        """Kill the process and start it again on the same journal; the effects of the load."""
        self.gone.update(self.frames)
        self.frames, self.calls, self.tools, self.timers = {}, {}, {}, {}
        self.now += after_s
        self._boot()
        return self.effects

    def on(self, event: Event) -> list[Effect]:
        """Let it happen; the effects, which are already done."""
        effects = self.agent.handle(event, self.now)
        self._perform(effects)
        return effects

    def connect(self, conn: int) -> list[ServerFrame]:
        """Open a connection; the frames that greet it."""
        self.frames[conn] = []
        self.on(Connected(conn))
        return list(self.frames[conn])

    def disconnect(self, conn: int) -> None:
        """Lose a connection."""
        self.gone[conn] = self.frames.pop(conn)
        self.on(Disconnected(conn))

    def send(self, conn: int, request_id: str, *messages: Message, **body: Any) -> list[Effect]:
        """A client sends a chat request."""
        return self.on(Received(conn, request(request_id, *messages, **body)))

    def probe(self, conn: int, probe_id: str = "p") -> list[Effect]:
        """A client asks for an active stream."""
        return self.on(Received(conn, ResumeRequest(probe_id=probe_id)))

    def ack(self, conn: int, request_id: str) -> list[Effect]:
        """A client accepts an offer."""
        return self.on(Received(conn, ResumeAck(id=request_id)))

    def cancel(self, conn: int, request_id: str) -> list[Effect]:
        """A client stops a request."""
        return self.on(Received(conn, CancelRequest(id=request_id)))

    def clear(self, conn: int) -> list[Effect]:
        """A client clears the chat."""
        return self.on(Received(conn, ChatClear()))

    def say(self, text: str, request_id: str | None = None) -> list[Effect]:
        """The open model call says something."""
        return self.on(ModelDelta(request_id or self.open_call, "text", text))

    def ask_tool(self, call_id: str, tool: str, *pieces: str) -> list[Effect]:
        """The open model call asks for a tool, its input in pieces; the effects of the whole call."""
        for piece in pieces:
            self.on(ModelToolInput(self.open_call, call_id, tool, piece))
        return self.on(ModelToolCall(self.open_call, call_id, tool, "".join(pieces)))

    def returned(self, output: Any) -> list[Effect]:
        """The running tool has a result."""
        tool = self._ended_tool()
        return self.on(ToolReturned(tool.request_id, tool.call_id, output))

    def raised(self, error: str) -> list[Effect]:
        """The running tool fails."""
        tool = self._ended_tool()
        return self.on(ToolRaised(tool.request_id, tool.call_id, error))

    def _ended_tool(self) -> RunTool:
        (request_id,) = self.tools
        return self.tools.pop(request_id)

    def finish(self, reason: str = "stop") -> list[Effect]:
        """The open model call ends well."""
        return self.on(ModelFinished(self._ended_call(), reason))

    def fail(self, error: str, *, in_band: bool = False) -> list[Effect]:
        """The open model call fails."""
        return self.on(ModelFailed(self._ended_call(), error, in_band))

    def _ended_call(self) -> str:
        request_id = self.open_call
        del self.calls[request_id]
        return request_id

    def fire(self) -> list[Effect]:
        """The one timer that is set is due."""
        ((key, self.now),) = self.timers.items()
        del self.timers[key]
        return self.on(TimerFired(key))

    @property
    def open_call(self) -> str:
        """The request id of the one open model call."""
        (request_id,) = self.calls
        return request_id

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist(writes):
                    for write in writes:
                        self.rows = applied(self.rows, write)
                    self.history.append(self.rows)
                case Send(conn, frame):
                    self.frames[conn].append(frame)
                case Broadcast(frame, excluding):
                    for conn in self.frames.keys() - excluding:
                        self.frames[conn].append(frame)
                case Replay(conn):
                    self.frames[conn] += [replay_frame(effect, seq) for seq in range(len(effect.chunks))]
                case _:
                    self._arrange(effect)

    def _arrange(self, effect: Work) -> None:
        match effect:
            case CallModel(request_id):
                self._assert_nothing_runs()
                self.calls[request_id] = effect
                self.called.append(effect)
            case RunTool(request_id):
                self._assert_nothing_runs()
                self.tools[request_id] = effect
                self.ran.append(effect)
            case AbortWork(request_id):
                assert self.calls.pop(request_id, None) or self.tools.pop(request_id, None)
            case SetTimer(key, at):
                self.timers[key] = at
            case CancelTimer(key):
                del self.timers[key]

    def _assert_nothing_runs(self) -> None:
        assert not self.calls
        assert not self.tools, "one piece of work at a time"


def responses(frames: list[ServerFrame]) -> list[ChatResponse]:
    """The chunk, error and terminal frames among these."""
    return [f for f in frames if isinstance(f, ChatResponse)]


def terminals(frames: list[ServerFrame], *, live: bool = True) -> list[tuple[str, str | None]]:
    """(request id, outcome) of the terminals among these; only those that are no replay, if `live`."""
    return [(f.id, f.outcome) for f in responses(frames) if f.done and not (live and f.replay)]


def text_shown(frames: list[ServerFrame]) -> str:
    """The text of the chunk frames among these."""
    chunks = [loads(f.body) for f in responses(frames) if f.seq is not None]
    return "".join(c["delta"] for c in chunks if c["type"] == "text-delta")


def texts_of(messages: list[Message]) -> list[str]:
    """Each message as `id: text`."""
    return [f"{m['id']}: {''.join(p.get('text', '') for p in m['parts'])}" for m in messages]
