"""The scripted model: an OpenAI-compatible server whose every word, hold and failure is planned.

Owns what is recorded about model calls. One server serves all cases of a run; the marker in the
prompt tells whose call it is. Without a run it serves one set of scripts to whoever asks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Protocol

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from think_conformance.errors import UsageError
from think_conformance.history.op import Kind, Source
from think_conformance.plan import Step
from think_conformance.shell.model_script import Completion, Scripts, check_scripts, error_body, find_marker
from think_conformance.shell.ports import LOOPBACK
from think_conformance.shell.recorder import Recorder
from think_conformance.wire.codec import dumps, loads

_PROMPT_LIMIT = 64 * 1024 * 1024

_SILENCE = object()
"""The gate that a silent script holds at; only healing opens it."""


ANYBODY = "default"
"""The turn whose script answers prompts without a marker, where anybody is served."""


class Notes(Protocol):
    """Whatever takes what is told of model calls: a recorder, or something that only shows it."""

    def append(
        self, source: Source, kind: Kind, ids: dict[str, Any] | None = None, payload: Any = None, /
    ) -> object: ...


class ModelServer:
    """`load` the scripts of a case before it runs, `unload` them when its history ends; or `serve_anybody`
    without any case."""

    def __init__(self) -> None:
        self._cases: dict[str, _Case] = {}
        self._anybody: _Case | None = None
        self._runner: web.AppRunner | None = None
        self.address = ("", 0)
        self.url = ""

    async def start(self, host: str = LOOPBACK, port: int = 0) -> None:
        """Listen; afterwards `address` is host and port, `url` the base URL, `/v1` included. OSError if
        the port is taken."""
        app = web.Application(client_max_size=_PROMPT_LIMIT)
        app.router.add_post("/v1/chat/completions", self._serve)
        # A caller that hangs up must be noticed also while the script holds at a gate.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.address = (host, self._runner.addresses[0][1])
        self.url = f"http://{host}:{self.address[1]}/v1"

    def serve_anybody(self, scripts: Scripts, notes: Notes) -> None:
        """From now on a prompt is answered by the script of the turn its marker names, whatever the case;
        without such a script, or a marker, by that of `ANYBODY`. UsageError if a script is not well formed,
        or holds at a gate, which nobody opens."""
        check_scripts(scripts)
        if ANYBODY not in scripts:
            raise UsageError(f"no script for the turn `{ANYBODY}`, which answers prompts without a marker")
        gates = [step for calls in scripts.values() for steps in calls for step in steps if "gate" in step]
        if gates:
            raise UsageError(f"{dumps(gates[0])} is a gate, and without a run nobody opens it")
        self._anybody = _Case(ANYBODY, scripts, notes)

    def load(self, case: str, scripts: Scripts, recorder: Recorder) -> None:
        """The n-th call of a marker gets script n of its turn, later ones the last. UsageError if a
        script is not well formed."""
        check_scripts(scripts)
        self._cases[case] = _Case(case, scripts, recorder)

    def unload(self, case: str) -> None:
        """Hang up on the calls still open; of this case nothing is recorded any more."""
        self._cases.pop(case).close()

    def open_gate(self, case: str, gate: str) -> None:
        """Let every call go on that holds there, now or later."""
        self._cases[case].gate(gate).set()

    def open_all(self, case: str) -> None:
        """Open every gate, known or not, and end every silence."""
        self._cases[case].open_all()

    def open_calls(self, case: str) -> int:
        """How many calls are being answered."""
        return len(self._cases[case].calls)

    async def quiet(self, case: str) -> None:
        """Returns when no call is being answered."""
        await self._cases[case].idle.wait()

    async def close(self) -> None:
        """Hang up on everyone and stop listening."""
        for case in list(self._cases):
            self.unload(case)
        if self._anybody is not None:
            self._anybody.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        try:
            prompt = loads(await request.read())
        except ValueError:
            prompt = None
        if not isinstance(prompt, dict):
            return self._refuse("the prompt is no JSON object", None)
        marker = find_marker(prompt.get("messages"))
        case, turn = self._anybody, marker[1] if marker else ANYBODY
        if case is not None:
            turn = turn if turn in case.scripts else ANYBODY
        elif marker is None:
            return self._refuse("a prompt without a marker", None)
        else:
            case = self._cases.get(marker[0])
        if case is None:  # a case that is over; its history is closed
            return web.json_response(error_body("this case is over"), status=400)
        if turn not in case.scripts:
            return self._refuse(f"no script for `{turn}`", case)
        if prompt.get("stream") is not True:
            return self._refuse("a call without `stream`: true", case)
        return await _Call(case, turn, prompt, request).run()

    def _refuse(self, reason: str, case: _Case | None) -> web.Response:
        """An error of the kit, not of the target; without a case it concerns all that run."""
        everyone = [self._anybody] if self._anybody else list(self._cases.values())
        for concerned in [case] if case else everyone:
            concerned.recorder.append("model", "fail", {}, {"reason": reason})
        return web.json_response(error_body(reason), status=400, dumps=dumps)


class _Case:
    def __init__(self, name: str, scripts: Scripts, recorder: Notes) -> None:
        self.name = name
        self.scripts = scripts
        self.recorder = recorder
        self.counts: Counter[str] = Counter()
        self.calls: set[_Call] = set()
        self.idle = asyncio.Event()
        self.idle.set()
        self.closed = False
        self._gates: dict[object, asyncio.Event] = {}
        self._all_open = False

    def enter(self, call: _Call) -> None:
        self.calls.add(call)
        self.idle.clear()

    def leave(self, call: _Call) -> None:
        self.calls.remove(call)
        if not self.calls:
            self.idle.set()

    def gate(self, name: object) -> asyncio.Event:
        gate = self._gates.setdefault(name, asyncio.Event())
        if self._all_open:
            gate.set()
        return gate

    def open_all(self) -> None:
        self._all_open = True
        for gate in self._gates.values():
            gate.set()

    def close(self) -> None:
        self.closed = True
        for call in list(self.calls):
            call.hang_up()


class _Call:
    """One call, from the prompt to its end."""

    def __init__(self, case: _Case, turn: str, prompt: dict[str, Any], request: web.Request) -> None:
        case.counts[turn] += 1
        number = case.counts[turn]
        scripts = case.scripts[turn]
        self._case = case
        self._steps = scripts[min(number, len(scripts)) - 1]
        self._ids = {"marker": f"{case.name}/{turn}", "call": number}
        self._prompt = {key: prompt[key] for key in ("messages", "tools") if key in prompt}
        self._request = request
        self._completion = Completion(f"{turn}-{number}")
        self._response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        self._writer: AbstractStreamWriter | None = None

    async def run(self) -> web.StreamResponse:
        self._note("model-call", payload=self._prompt)
        self._case.enter(self)
        how = "aborted"
        try:
            how, response = await self._play()
        except ConnectionError:
            response = self._response
        finally:
            self._note("model-end", payload={"how": how})
            self._case.leave(self)
        return response

    def hang_up(self) -> None:
        """Drop the connection as it stands."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _play(self) -> tuple[str, web.StreamResponse]:
        for step in self._steps:
            if isinstance(step, str):
                await self._say(step)
                return "done", self._response
            if "gate" in step:
                self._note("model-gate", {"gate": step["gate"]})
                await self._case.gate(step["gate"]).wait()
            elif "status" in step:
                return "error", _failure(step)
            elif "silence" in step:
                await self._begun()
                await self._case.gate(_SILENCE).wait()
            elif "cut" in step:
                await self._begun()
                self.hang_up()
                return "error", self._response
            else:
                await self._say(step)
                if "error" in step:
                    return "error", self._response
        await self._begun()
        return "error", self._response

    async def _say(self, step: Step) -> None:
        for event in self._completion.events(step):
            writer = await self._begun()
            await self._response.write(event)
            await writer.drain()

    async def _begun(self) -> AbstractStreamWriter:
        """The writer of the answer, its headers sent; they wait for the first word, so that a script
        may hold first and fail then."""
        if self._writer is None:
            if self._request.transport is not None:
                # With no buffer a drain ends when the last byte is in the hands of the system.
                self._request.transport.set_write_buffer_limits(high=0)
            self._writer = await self._response.prepare(self._request)
        if self._writer is None:
            raise ConnectionResetError("the caller hung up")
        return self._writer

    def _note(self, kind: Kind, more: dict[str, Any] | None = None, payload: Any = None) -> None:
        if not self._case.closed:
            self._case.recorder.append("model", kind, {**self._ids, **(more or {})}, payload or {})


def _failure(step: dict[str, Any]) -> web.Response:
    code = step["status"]
    body = step.get("body", error_body(f"scripted status {code}"))
    kind = "text/plain" if isinstance(body, str) else "application/json"
    headers = {"content-type": kind}
    headers.update({str(name).lower(): str(value) for name, value in step.get("headers", {}).items()})
    text = body if isinstance(body, str) else dumps(body)
    return web.Response(status=code, body=text.encode(), headers=headers)
