"""Every frame of the Think protocol, as data. The one place that knows field names.

Source: wire protocol sections 2-5 (WIRE-20 ... WIRE-92). A class is one `type`; a field that is
None or False is left out on the wire, `done` never is (WIRE-02). Unknown fields are ignored
(WIRE-01). Transcripts and stream chunks stay plain JSON objects, so that whatever they carry
passes through untouched (WIRE-120).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, Struct, UnsetType

Json = Any
Message = dict[str, Any]
"""A UIMessage: {id, role, parts, metadata?} (WIRE-130)."""

Outcome = Literal["completed", "error", "aborted", "skipped", "recovering"]
"""WIRE-86. All but `recovering` are final."""

IdleReason = Literal["idle", "continuation-owned"]


class Frame(Struct, tag_field="type", rename="camel", omit_defaults=True, kw_only=True):
    """One WebSocket text frame."""

    spec: ClassVar[str]


# ---- both directions ------------------------------------------------------------------------


class ChatMessages(Frame, tag="cf_agent_chat_messages"):
    """The full transcript (WIRE-70); from a client it is ignored (WIRE-47)."""

    spec = "WIRE-70"
    messages: list[Message]
    connect: bool = False


class ChatClear(Frame, tag="cf_agent_chat_clear"):
    """Client: clear the chat (WIRE-42). Server: another client did (WIRE-77)."""

    spec = "WIRE-77"


class AgentState(Frame, tag="cf_agent_state"):
    """Shared application state (WIRE-21, WIRE-23)."""

    spec = "WIRE-21"
    state: Json


# ---- client to server -----------------------------------------------------------------------


class RequestInit(Struct, omit_defaults=True, frozen=True):
    """The `init` of a chat request: a fetch-like envelope (WIRE-40)."""

    method: str | None = None
    body: str | None = None


class ChatRequest(Frame, tag="cf_agent_use_chat_request"):
    """Submit or regenerate; `init.body` is the JSON of section 4.1 (WIRE-40)."""

    spec = "WIRE-40"
    id: str
    init: RequestInit


class CancelRequest(Frame, tag="cf_agent_chat_request_cancel"):
    """Explicit stop of one request (WIRE-41)."""

    spec = "WIRE-41"
    id: str


class ResumeRequest(Frame, tag="cf_agent_stream_resume_request"):
    """Ask for an active stream; exactly one direct answer (WIRE-43)."""

    spec = "WIRE-43"
    probe_id: str | None = None


class ResumeAck(Frame, tag="cf_agent_stream_resume_ack"):
    """Accept an offer; starts the replay (WIRE-44)."""

    spec = "WIRE-44"
    id: str


class ClientTool(Struct, omit_defaults=True, frozen=True):
    """A tool the client answers (WIRE-55)."""

    name: str
    description: str | None = None
    parameters: Json = None


class ToolResult(Frame, tag="cf_agent_tool_result"):
    """The result of a client tool (WIRE-45)."""

    spec = "WIRE-45"
    tool_call_id: str
    tool_name: str
    output: Json = None
    state: Literal["output-available", "output-error"] | None = None
    error_text: str | None = None
    auto_continue: bool = False
    client_tools: list[ClientTool] | None = None


class ToolApproval(Frame, tag="cf_agent_tool_approval"):
    """The answer to an approval request (WIRE-46)."""

    spec = "WIRE-46"
    tool_call_id: str
    approved: bool
    auto_continue: bool = False


class RpcRequest(Frame, tag="rpc"):
    """A method call; all four fields are needed (WIRE-30)."""

    spec = "WIRE-30"
    id: str
    method: str
    args: list[Json]


# ---- server to client -----------------------------------------------------------------------


class Identity(Frame, tag="cf_agent_identity"):
    """Who answers, once per connection (WIRE-20). `agent` is the kebab class name."""

    spec = "WIRE-20"
    name: str
    agent: str
    state_follows: bool = False


class McpServers(Frame, tag="cf_agent_mcp_servers"):
    """The agent's MCP registry, on connect and on change (WIRE-22)."""

    spec = "WIRE-22"
    mcp: Json


class StateError(Frame, tag="cf_agent_state_error"):
    """A state frame was refused (WIRE-24)."""

    spec = "WIRE-24"
    error: str


class RpcResponse(Frame, tag="rpc"):
    """WIRE-30 (normal), WIRE-31 (error, without `done`), WIRE-32 (streaming)."""

    spec = "WIRE-30"
    id: str
    success: bool
    result: Json | UnsetType = UNSET
    error: str | None = None
    done: bool | None = None


class ChatResponse(Frame, tag="cf_agent_use_chat_response"):
    """One stream chunk, an error, or the terminal of a request (WIRE-71, section 5.1)."""

    spec = "WIRE-71"
    id: str
    body: str
    done: bool
    error: bool = False
    continuation: bool = False
    replay: bool = False
    replay_complete: bool = False
    seq: int | None = None
    message_ids: list[str] | None = None
    outcome: Outcome | None = None


class StreamResuming(Frame, tag="cf_agent_stream_resuming"):
    """The offer of a stream (WIRE-72); echoes `probeId` only as a direct answer."""

    spec = "WIRE-72"
    id: str
    probe_id: str | None = None


class ResumeNone(Frame, tag="cf_agent_stream_resume_none"):
    """Nothing to offer to this client; only `idle` speaks of the whole agent (WIRE-73)."""

    spec = "WIRE-73"
    reason: IdleReason | None = None
    probe_id: str | None = None


class StreamPending(Frame, tag="cf_agent_stream_pending"):
    """A turn is accepted, its stream has not started (WIRE-74)."""

    spec = "WIRE-74"
    id: str | None = None
    probe_id: str | None = None


class MessageUpdated(Frame, tag="cf_agent_message_updated"):
    """One stored message changed (WIRE-75)."""

    spec = "WIRE-75"
    message: Message


class ChatRecovering(Frame, tag="cf_agent_chat_recovering"):
    """Advisory: recovery of a turn began or ended; `id` is the recovery root (WIRE-76)."""

    spec = "WIRE-76"
    recovering: bool
    id: str | None = None


ClientFrame = (
    ChatRequest
    | CancelRequest
    | ChatClear
    | ResumeRequest
    | ResumeAck
    | ToolResult
    | ToolApproval
    | ChatMessages
    | AgentState
    | RpcRequest
)
"""What a client may send (section 4, WIRE-23, section 3)."""

ServerFrame = (
    Identity
    | AgentState
    | McpServers
    | StateError
    | RpcResponse
    | ChatMessages
    | ChatResponse
    | StreamResuming
    | ResumeNone
    | StreamPending
    | MessageUpdated
    | ChatRecovering
    | ChatClear
)
"""What a server may send (sections 2, 3 and 5)."""
