"""One case, played: the plan's operations, its faults, then the epilogue. Yields a history.

Judges nothing. What it waits for is always something observed, bounded by a deadline; a deadline
that passes is recorded as `info`, never as a failure of anybody.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from think_conformance.errors import UsageError
from think_conformance.history.op import Kind
from think_conformance.plan import After, Operation, Plan
from think_conformance.scenarios.base import Scenario
from think_conformance.shell.client import Client, RpcFailed
from think_conformance.shell.echo import conversation, newest_stream
from think_conformance.shell.epilogue import Epilogue
from think_conformance.shell.instance import Instance
from think_conformance.shell.process import KilledWhileStarting, TargetNotReady
from think_conformance.shell.recorder import Recorder
from think_conformance.shell.seen import sees
from think_conformance.shell.world import World
from think_conformance.targets.contract import Target
from think_conformance.wire.codec import dumps
from think_conformance.wire.frames import (
    CancelRequest,
    ChatClear,
    ChatRequest,
    Frame,
    Message,
    RequestInit,
    ResumeAck,
    ResumeRequest,
)
from think_proxy.carriers.abilities import carrier
from think_proxy.engine import Unsupported
from think_proxy.plan import Fault, Leg, ProcessAction

LEGS: tuple[Leg, ...] = ("client", "model", "target")
"""The legs that a case can strike."""


class NotReached(Exception):
    """What an operation waits for did not come in time; the rest of the plan cannot be played.
    Where nothing but waiting is left of the plan, nothing is lost by it."""


class Case:
    """A scenario on one agent instance of one target process. Raises as `check_faults` does."""

    def __init__(
        self, scenario: Scenario, name: str, instance: Instance, world: World, recorder: Recorder
    ) -> None:
        check_faults(scenario.plan.faults)
        self.scenario = scenario
        self.plan = scenario.plan
        self.name = name
        self.instance = instance
        self.world = world
        self.recorder = recorder
        self.clients: dict[str, Client] = {}
        self._texts: dict[str, str] = {}
        self._striking: set[str] = set()

    async def play(self, timeout_s: float) -> None:
        """Operations within `timeout_s`, then the epilogue; leaves no task and no socket behind."""
        self.world.load(self.name, named(self.plan.model, self.name), self.recorder)
        self.instance.join(self.recorder)
        watchers = {
            fault.id: asyncio.create_task(self._strike_when_seen(fault))
            for fault in self._faults_on("target")
        }
        try:
            if self.plan.configure:
                await self._configure()
            self._arm()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._operate()
            except TimeoutError:
                self._record(
                    "info", {}, {"reason": f"the case was not played to its end within {timeout_s} s"}
                )
            for ident, watcher in watchers.items():
                if ident not in self._striking:
                    watcher.cancel()
            for failed in await asyncio.gather(*watchers.values(), return_exceptions=True):
                if isinstance(failed, Exception):
                    raise failed
            await Epilogue(self).play()
        finally:
            for watcher in watchers.values():
                watcher.cancel()
            await self.heal()
            self.world.unload(self.name)
            for client in self.clients.values():
                await client.close()
            self.instance.leave(self.recorder)

    def _faults_on(self, leg: Leg) -> list[Fault]:
        return [fault for fault in self.plan.faults if fault.leg == leg]

    def _arm(self) -> None:
        """Every fault on its leg, before the first operation."""
        client = self.instance.proxy
        client.arm(self._faults_on("client"), self.instance.scope(self.name), journal=self._journal)
        self.world.model_proxy.arm(
            self._faults_on("model"), self.world.model_scope(self.name), journal=self._journal
        )

    async def heal(self) -> None:
        """Lifts every fault of this case."""
        await self.instance.proxy.heal(self.instance.scope(self.name))
        await self.world.model_proxy.heal(self.world.model_scope(self.name))

    async def _configure(self) -> None:
        """The agent's options for this case; an evict brings them into force."""
        control = self.client("control")
        try:
            await control.rpc("configure", [self.plan.configure])
            await self.perform("evict")
        except RpcFailed as failure:
            self._record("fail", {}, {"reason": f"the agent could not be configured: {failure.text}"})

    async def perform(self, action: ProcessAction) -> None:
        """One process action; returns when it is done."""
        if action != "evict":
            await self.instance.perform(action)
            return
        ids = {"epoch": self.instance.epoch}
        self.recorder.append("process", "process", ids, {"action": "evict"})
        await self.client("control").rpc("evict", [], closing_is_ok=True)

    def client(self, name: str) -> Client:
        """The client of that name, made at first use."""
        if name not in self.clients:
            self.clients[name] = Client(
                name, lambda: self.instance.endpoint(self.name), self.recorder, lambda: self.instance.epoch
            )
        return self.clients[name]

    @staticmethod
    def request_of(turn: str) -> str:
        """The request id a client sends for a turn of the plan."""
        return f"req-{turn}"

    @property
    def roots(self) -> list[str]:
        """Every request id the plan sends, in order, once."""
        return list(
            dict.fromkeys(
                op.request or self.request_of(op.turn)
                for op in self.plan.operations
                if op.do == "send" and op.turn
            )
        )

    # ---- operations ---------------------------------------------------------------------------

    async def _operate(self) -> None:
        operations = self.plan.operations
        index = 0
        try:
            for index, operation in enumerate(operations):
                await self._reach(index, operation)
                await self._perform(index, operation)
        except NotReached as stop:
            unplayed = any(operation.do != "wait" for operation in operations[index:])
            self._record("info", {} if unplayed else {"operation": index}, {"reason": str(stop)})

    async def _reach(self, index: int, operation: Operation) -> None:
        after = operation.after
        if after is None:
            return
        patience_s = operation.within_s + self.instance.target.heartbeat_s
        try:
            async with asyncio.timeout(patience_s):
                await self._wait_for(after)
        except TimeoutError:
            raise NotReached(
                f"operation {index} ({operation.do}) was not reached: "
                f"{dumps(after)} was not seen within {patience_s:g} s"
            ) from None
        if after.fault:  # bounded by the time the fault itself has
            await self._wait_for_record("fault-done", after.fault)

    async def _wait_for(self, after: After) -> None:
        for fault in (after.fired, after.fault):
            if fault:
                await self._wait_for_record("fault-fired", fault)
        if seen := after.seen:
            await self.recorder.wait_for(lambda r: sees(seen, r), float("inf"), nth=seen.nth)

    async def _wait_for_record(self, kind: Kind, fault: str) -> None:
        await self.recorder.wait_for(lambda r: r.kind == kind and r.ids.get("fault") == fault, float("inf"))

    async def _perform(self, index: int, op: Operation) -> None:
        ids = {"operation": index} | ({"client": op.client} if op.client else {})
        ids |= {"turn": op.turn} if op.turn else {}
        match op.do:
            case "connect" | "send" | "stop" | "close" | "probe" | "ack" | "clear" | "raw" | "get-messages":
                await self._as_client(ids, op, self.client(op.client or "a"))
            case "rpc":
                await self._call(ids, op)
            case "open-gate":
                self._record("invoke", ids, {"do": op.do, "gate": op.gate})
                self.world.model.open_gate(self.name, op.gate or "")
                self._record("ok", ids, {})
            case "wait":
                self._record("ok", ids, {"do": op.do})

    async def _as_client(self, ids: dict[str, Any], op: Operation, client: Client) -> None:
        said: dict[str, Any] = {"do": op.do}
        frame = self._frame(op, ids["operation"], said)
        self._record("invoke", ids, said)
        if frame is not None:
            went = await client.send(frame)
        elif op.do == "connect":
            went = await client.connect(follow=not op.quiet)
        elif op.do == "close":
            went = await client.close(op.code or 1000)
        elif op.do == "raw":
            went = await client.send_text(op.text or "")
        else:
            messages = await client.get_messages()
            went = messages is not None
            said = {"messages": messages}
        if went:
            self._record("ok", ids, {"messages": said["messages"]} if op.do == "get-messages" else {})
        else:
            why = client.refusal if op.do in ("connect", "get-messages") else "the connection is not open"
            self._record("info", ids, {"reason": f"`{op.do}` did not work: {why}"})

    def _frame(self, op: Operation, number: int, said: dict[str, Any]) -> Frame | None:
        """The frame an operation sends; notes in `said` what it resolved to. A probe is named by the number
        of its operation, so that a plan can wait for its answer."""
        request = op.request or self.request_of(op.turn or "")
        match op.do:
            case "send":
                message = self._user_message(op)
                known = conversation(self.recorder.records, op.client or "a", op.echo) if op.echo else []
                messages = [m for m in known if m["id"] != message["id"]] + [message]
                body = {"messages": messages, "trigger": "submit-message"}
                said |= {"request": request, "text": op.text, "messages": [message]}
                return ChatRequest(id=request, init=RequestInit("POST", dumps(body)))
            case "stop":
                if op.newest:
                    request = newest_stream(self.recorder.records, op.client or "a") or request
                said["request"] = request
                return CancelRequest(id=request)
            case "ack":
                said["request"] = request
                return ResumeAck(id=request)
            case "clear":
                return ChatClear()
            case "probe":
                return ResumeRequest(probe_id=f"probe-{number}")
        return None

    def _user_message(self, op: Operation) -> Message:
        text = self._texts.setdefault(op.turn or "", f"{op.text or op.turn} [[{self.name}/{op.turn}]]")
        return {"id": f"user-{op.turn}", "role": "user", "parts": [{"type": "text", "text": text}]}

    async def _call(self, ids: dict[str, Any], op: Operation) -> None:
        self._record("invoke", ids, {"do": "rpc", "method": op.method, "args": op.args or []})
        try:
            result = await self.client(op.client or "a").rpc(op.method or "", op.args or [], op.within_s)
        except RpcFailed as failure:
            self._record("fail" if failure.definite else "info", ids, {"reason": failure.text})
        else:
            self._record("ok", ids, {"result": result})

    # ---- faults that fire on what was seen ------------------------------------------------------

    async def _strike_when_seen(self, fault: Fault) -> None:
        seen = fault.when.seen
        assert seen is not None, "loading a plan demands it"
        ids = {"fault": fault.id}
        named = [action.name for action in fault.do]
        self.recorder.append("run", "fault-planned", ids, {"leg": "target", "do": named})
        record = await self.recorder.wait_for(lambda r: sees(seen, r), float("inf"), nth=seen.nth)
        assert record is not None
        self._striking.add(fault.id)
        ids = {"fault": fault.id, "token": f"{fault.id}#1"}
        self.recorder.append("run", "fault-fired", ids, {"leg": "target", "record": record.index})
        outcome: dict[str, Any] = {"did": named, "outcome": "done"}
        try:
            async with asyncio.timeout(fault.within_s):
                for action in fault.do:
                    assert action.process is not None, "loading a plan demands it"
                    await self.perform(action.process)
        except TimeoutError:
            outcome["outcome"] = "timeout"
        except KilledWhileStarting as overtaken:
            outcome |= {"outcome": "overtaken", "reason": str(overtaken)}
        except (TargetNotReady, RpcFailed) as failure:
            # What it means that a target does not come back is for the checks to say.
            outcome |= {"outcome": "error", "reason": str(failure)}
        self.recorder.append("run", "fault-done", ids, outcome)

    # ---- records --------------------------------------------------------------------------------

    def _journal(self, kind: Any, ids: dict[str, Any], payload: Any) -> None:
        if kind != "info":
            self.recorder.append("proxy", kind, ids, payload)
        elif ids.get("client") != "control":  # how its connections end, no check sees
            self._record(kind, ids, payload)

    def _record(self, kind: Any, ids: dict[str, Any], payload: Any) -> None:
        self.recorder.append("run", kind, ids, payload)


def heading(
    case: str, name: str, scenario: Scenario, plan: Plan, target: Target, seed: int
) -> dict[str, Any]:
    """The payload of the first record of a history: what is played, on which agent of what target."""
    return {
        "case": case,
        "scenario": scenario.id,
        "title": scenario.title,
        "exercises": list(scenario.exercises),
        "target": target.name,
        "claims": list(target.claims),
        "kind": target.kind,
        "facts": target.facts,
        "heartbeat_s": target.heartbeat_s,
        "seed": seed,
        "name": name,
        "plan": msgspec.to_builtins(plan),
    }


def check_faults(faults: list[Fault]) -> None:
    """UsageError for the first fault that a case cannot carry out as it is planned: what would not be
    armed, or in part only, is refused."""
    for fault in faults:
        if fault.leg not in LEGS:
            raise UsageError(
                f"fault `{fault.id}`: a run cannot strike the leg `{fault.leg}`; it can: {', '.join(LEGS)}"
            )
        if fault.leg == "target":
            _check_on_target(fault)
            continue
        if any(action.process == "evict" for action in fault.do):
            raise UsageError(
                f"fault `{fault.id}`: `evict` cannot be done from the leg `{fault.leg}`; "
                "use the leg `target` and `when: {seen: ...}`"
            )
        try:
            carrier(fault.leg, controls_process=fault.leg == "client").moments(fault)
        except Unsupported as unsupported:
            raise UsageError(str(unsupported)) from None


def _check_on_target(fault: Fault) -> None:
    others = [name for name in fault.when.__struct_fields__ if name != "seen"]
    extra = [f"when.{name}" for name in others if getattr(fault.when, name) is not None]
    extra += ["times"] if fault.times != 1 else []
    if extra:
        raise UsageError(f"fault `{fault.id}`: the leg `target` knows no `{extra[0]}`, only `when.seen`")


def named(value: Any, name: str) -> Any:
    """Plain data with `{case}` replaced by the name of the agent, which nothing else shares."""
    if isinstance(value, str):
        return value.replace("{case}", name)
    if isinstance(value, list):
        return [named(part, name) for part in value]
    if isinstance(value, dict):
        return {key: named(part, name) for key, part in value.items()}
    return value
