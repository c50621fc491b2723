"""The official client against the reference, the proxy between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from moments import (
    ACK,
    AHEAD,
    AWAY,
    FAULTS,
    GATE,
    MOMENTS,
    OUTPUT,
    PROBE,
    TOOL,
    Moment,
    chunk,
    held,
    words,
)
from stage import Official, Stage

from think_conformance.shell.instance import Instance

pytestmark = pytest.mark.asyncio(loop_scope="session")

Messages = list[dict[str, Any]]

KINDS = pytest.mark.parametrize("kind", ["node", "page"])


def said(messages: Messages) -> str:
    """What the assistant says, answers apart by a bar."""
    return "|".join(
        "".join(part.get("text", "") for part in message["parts"])
        for message in messages
        if message["role"] == "assistant"
    )


def asked(messages: Messages) -> int:
    """How many messages are a user's."""
    return sum(message["role"] == "user" for message in messages)


def plain(messages: Messages) -> Messages:
    """Messages without what a client that has followed the stream cannot have as the server has it: the
    server writes `toolName` into a tool call, and closes a text that was broken off (WIRE-132 to 134)."""
    return [{**message, "parts": [_plain(part) for part in message["parts"]]} for message in messages]


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    own = {"toolName"} | ({"state"} if part["type"] == "text" else set())
    return {key: value for key, value in part.items() if key not in own}


def by_id(messages: Messages) -> Messages:
    """Plain messages, in an order that tells nothing."""
    return sorted(plain(messages), key=lambda message: str(message["id"]))


def filled(messages: Messages) -> Messages:
    """Messages without answers that have no part."""
    return [message for message in messages if message["parts"] or message["role"] != "assistant"]


def loosely(messages: Messages) -> Messages:
    """What of a page's messages can be relied on before it is loaded again (docs/interop.md)."""
    return by_id(filled(messages))


def says(client: Official, state: dict[str, Any]) -> str:
    """What the assistant says in that state of the client."""
    return said(filled(state["messages"]) if client.kind == "page" else state["messages"])


async def speaks(client: Official, text: str) -> None:
    """It shows that and is at work; a page may follow a turn without calling it its own."""
    await client.until(
        lambda s: (s["status"] == "streaming" or s["busy"]) and says(client, s) == text,
        f"at work, showing {text!r}",
    )


async def settled(client: Official, text: str, status: str = "ready", **more: float) -> None:
    """It is not at work any more, and shows that."""
    await client.until(
        lambda s: s["status"] == status and not s["busy"] and says(client, s) == text,
        f"{status}, showing {text!r}",
        **more,
    )


async def shows_the_truth(stage: Stage, client: Official, text: str, status: str = "ready") -> None:
    """It has settled on `text`, which is what the server holds, and every fault has struck."""
    await settled(client, text, status)
    truth = await stage.truth()
    assert said(truth) == text
    await agrees(client, truth, loosely if client.kind == "page" else plain)
    await settled(client, text, status)
    assert stage.unfired == []


async def agrees(client: Official, truth: Messages, view: Callable[[Messages], Messages] = plain) -> None:
    """It shows what the server holds."""
    await client.until(lambda s: view(s["messages"]) == view(truth), f"showing {truth}")


@KINDS
async def test_a_turn_completes(staged: Any, kind: str) -> None:
    async with staged({"t1": [[*words(1, 4), "done"]]}) as stage:
        client = await stage.client(kind)
        await client.do("send", text=stage.says("t1"))
        await shows_the_truth(stage, client, "w1 w2 w3 w4 ")
        assert stage.count("model-call") == 1


@KINDS
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.name)
async def test_the_line_fails(staged: Any, kind: str, moment: Moment, fault: str) -> None:
    ahead = AHEAD if moment.queued else {}
    calls = len(moment.calls) + len(ahead)
    turns = {**ahead, "t1": moment.calls, "t2": [[{"text": "next "}, "done"]]}
    async with staged(turns, moment.faults(FAULTS[fault])) as stage:
        if moment.queued:
            client = await queued(stage, kind)
            stage.open_gate("accepted")
        else:
            client = await stage.client(kind)
            await client.do("send", text=stage.says("t1"))
        await stage.seen("fault-fired", fault="struck")
        if fault == "cut":
            await client.until_opened(2 + moment.lost_before)
        stage.open_gate("go")
        await stage.seen("model-end", calls)
        await stage.heal()
        await shows_the_truth(stage, client, moment.says)
        assert stage.count("model-call") == calls
        await client.do("send", text=stage.says("t2"))
        await shows_the_truth(stage, client, f"{moment.says}|next ")
        await client.do("refresh")
        await agrees(client, await stage.truth())
        assert stage.count("model-call") == calls + 1
        assert stage.count("effect") == moment.effects


async def queued(stage: Stage, kind: str) -> Official:
    """A client whose turn waits behind that of another."""
    other = await stage.client("node", "b")
    await other.do("send", text=stage.says("t0"))
    await stage.seen("model-gate")
    client = await stage.client(kind)
    await client.do("send", text=stage.says("t1"))
    await other.until(lambda s: asked(s["messages"]) == 2, "that both were accepted")
    return client


@KINDS
async def test_a_server_that_restarts_its_service_is_followed(staged: Any, kind: str) -> None:
    closed = {"id": "closed", "when": chunk("text-delta", nth=2), "do": [{"cut": {"close": 1012}}]}
    async with staged({"t1": OUTPUT}, [closed]) as stage:
        client = await stage.client(kind)
        await client.do("send", text=stage.says("t1"))
        await client.until_opened(2)
        await speaks(client, "w1 w2 w3 w4 ")
        stage.open_gate("go")
        await shows_the_truth(stage, client, "w1 w2 w3 w4 w5 w6 ")
        assert stage.count("model-call") == 1


@KINDS
async def test_a_refresh_in_mid_stream(staged: Any, kind: str) -> None:
    async with staged({"t1": OUTPUT}) as stage:
        client = await stage.client(kind)
        await client.do("send", text=stage.says("t1"))
        await speaks(client, "w1 w2 w3 w4 ")
        await client.do("refresh")
        await speaks(client, "w1 w2 w3 w4 ")
        stage.open_gate("go")
        await shows_the_truth(stage, client, "w1 w2 w3 w4 w5 w6 ")
        assert stage.count("model-call") == 1


@KINDS
async def test_other_tabs_see_the_turn(staged: Any, kind: str) -> None:
    async with staged({"t1": OUTPUT}) as stage:
        client, beside = await stage.client(kind), await stage.client(kind, "b")
        await client.do("send", text=stage.says("t1"))
        await speaks(client, "w1 w2 w3 w4 ")
        late = await stage.client(kind, "c")
        await speaks(late, "w1 w2 w3 w4 ")
        stage.open_gate("go")
        for tab in client, beside, late:
            await shows_the_truth(stage, tab, "w1 w2 w3 w4 w5 w6 ")
        assert stage.count("model-call") == 1


async def test_a_tab_beside_sees_the_words_as_they_come(staged: Any) -> None:
    async with staged({"t1": OUTPUT}) as stage:
        client, beside = await stage.client("page"), await stage.client("page", "b")
        await client.do("send", text=stage.says("t1"))
        await speaks(beside, "w1 w2 w3 w4 ")
        stage.open_gate("go")
        await shows_the_truth(stage, beside, "w1 w2 w3 w4 w5 w6 ")


@KINDS
async def test_a_stop_ends_the_turn(staged: Any, kind: str) -> None:
    async with staged({"t1": OUTPUT}) as stage:
        client = await stage.client(kind)
        await client.do("send", text=stage.says("t1"))
        await speaks(client, "w1 w2 w3 w4 ")
        await client.do("stop")
        ended = await stage.seen("model-end")
        assert ended.payload["how"] == "aborted"
        await shows_the_truth(stage, client, "w1 w2 w3 w4 ")
        assert stage.count("model-call") == 1


@KINDS
async def test_a_failure_while_away_is_learned_on_return(staged: Any, kind: str) -> None:
    async with staged({"t1": [[*words(1, 2), GATE, {"error": "overloaded"}]]}) as stage:
        client = await stage.client(kind)
        await client.do("send", text=stage.says("t1"))
        await speaks(client, "w1 w2 ")
        await client.do("leave")
        stage.open_gate("go")
        await stage.seen("model-end")
        await client.do("back")
        await shows_the_truth(stage, client, "w1 w2 ", status="error")
        assert "overloaded" in client.shown["error"]
        assert stage.count("model-call") == 1


@KINDS
@pytest.mark.parametrize("ending", ["done", {"error": "overloaded"}], ids=["done", "failed"])
async def test_the_turn_ends_while_the_client_is_offline(staged: Any, kind: str, ending: Any) -> None:
    lost = {"id": "lost", "when": chunk("text-delta", nth=2), "do": [{"cut": "reset"}]}
    async with staged({"t1": [[*words(1, 2), GATE, *words(3, 4), ending]]}, [lost]) as stage:
        client = await stage.client(kind)
        stage.arm([AWAY])
        await client.do("send", text=stage.says("t1"))
        await stage.seen("fault-fired", fault="away")
        if kind == "page":
            await client.do("offline")
        stage.open_gate("go")
        await stage.seen("model-end")
        if kind == "page":
            await client.do("online")
        await stage.heal()
        await shows_the_truth(stage, client, "w1 w2 w3 w4 ", "ready" if ending == "done" else "error")
        assert stage.count("model-call") == 1


@KINDS
async def test_known_a_tool_call_cut_in_its_input_is_shown_twice(staged: Any, kind: str) -> None:
    """A flaw of the client (docs/interop.md): the transcript is whole, and so is the next page."""
    cut = {"id": "cut", "when": chunk("tool-input-available"), "do": [{"cut": "reset"}]}
    async with staged({"t1": [[TOOL, "done"], [GATE, *words(1, 3), "done"]]}, [cut]) as stage:
        client = await stage.client(kind)
        await client.do("send", text=stage.says("t1"))
        twice = ["input-streaming", "output-available"]
        await client.until(lambda s: tools(s["messages"]) == twice, f"tool calls {twice}")
        stage.open_gate("go")
        await settled(client, "w1 w2 w3 ")
        assert tools(await stage.truth()) == ["output-available"]
        await client.do("refresh")
        await shows_the_truth(stage, client, "w1 w2 w3 ")
        assert (stage.count("model-call"), stage.count("effect")) == (2, 1)


async def test_known_an_offer_taken_up_too_late_is_shown_as_an_empty_answer(staged: Any) -> None:
    """A flaw of the hook (docs/interop.md): the transcript is whole, and so is the next page."""
    lost = {"id": "lost", "when": {"client": "a", **chunk("text-delta")}, "do": [{"cut": "reset"}]}
    async with staged({**AHEAD, "t1": [[*words(1, 3), {"gate": "last"}, "done"]]}, [lost]) as stage:
        client = await queued(stage, "page")
        stage.arm([AWAY])
        stage.open_gate("accepted")
        await client.until(lambda s: s["status"] == "error", "that the line is lost")
        await stage.seen("fault-fired", fault="away")
        await stage.heal()
        # the offer of the turn ahead ends the wait for an answer, which then comes
        stage.arm([held("probe", PROBE)])
        await stage.seen("fault-fired", fault="probe")
        await client.until(lambda s: s["status"] == "submitted", "that it has taken up the offer")
        stage.open_gate("go")
        await stage.seen("model-gate", gate="last")
        await stage.heal()
        # it offers the turn that waited, and the ack of that comes after its end
        stage.arm([held("ack", ACK)])
        await stage.seen("fault-fired", fault="ack")
        stage.open_gate("last")
        await client.until(
            lambda s: not s["busy"] and said(s["messages"]) == "ahead |w1 w2 w3 |", "an empty answer"
        )
        await stage.heal()
        await shows_the_truth(stage, client, "ahead |w1 w2 w3 ")
        await client.do("refresh")
        await agrees(client, await stage.truth())
        assert stage.count("model-call") == 2


def tools(messages: Messages) -> list[str]:
    """The states of the tool calls shown."""
    return [part["state"] for m in messages for part in m["parts"] if part["type"].startswith("tool-")]


CRASHES = {
    "before-the-first-token": ("", [[GATE, "done"], [*words(1, 3), "done"]], "w1 w2 w3 "),
    "during-output": ("w1 w2 ", [[*words(1, 2), GATE, "done"], [*words(3, 4), "done"]], "w1 w2 w3 w4 "),
}


@KINDS
@pytest.mark.parametrize("moment", CRASHES)
async def test_a_crash_is_recovered(alone: Any, kind: str, moment: str) -> None:
    shown, calls, says = CRASHES[moment]
    async with alone({"t1": calls}) as (stage, instance):
        client = await crashed(stage, instance, kind, shown)
        await shows_the_truth(stage, client, says)
        assert stage.count("model-call") == 2


@KINDS
async def test_a_crash_that_is_not_recovered_is_seen(alone: Any, kind: str) -> None:
    shown, calls, says = CRASHES["during-output"]
    async with alone({"t1": calls}, "--defect", "no-terminal-after-crash") as (stage, instance):
        client = await crashed(stage, instance, kind, shown)
        with pytest.raises(AssertionError, match="not within"):
            await settled(client, says, patience_s=3)
        # it was not slow: the server has no more, and the client still does what it is told
        assert said(await stage.truth()) != says
        assert stage.count("model-call") == 1
        await client.do("refresh")


async def crashed(stage: Stage, instance: Instance, kind: str, shown: str) -> Official:
    """A client that has seen `shown` when the process was killed, and is connected to the next one."""
    client = await stage.client(kind)
    await client.do("send", text=stage.says("t1"))
    await stage.seen("model-gate")
    await client.until(lambda s: said(s["messages"]) == shown, f"showing {shown!r}")
    await instance.perform("kill")
    await instance.perform("restart")
    await client.until_opened(2)
    return client
