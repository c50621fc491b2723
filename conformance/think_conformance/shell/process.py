"""The process group of a target: start, ready, kill, pause, restart on the same data, stop.

Owns the promise that nothing is left behind, whatever becomes of the kit: the group is told to a
watchdog process before the target's own program runs. POSIX.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import aiohttp

from think_conformance.errors import UsageError
from think_conformance.shell import ports, watchdog
from think_conformance.shell.recorder import Append
from think_conformance.targets.command import command_line, environment, executable
from think_conformance.targets.contract import Target

# The shell that becomes the target tells the watchdog its group first: there is no moment at which
# the kit can die and leave a target that nobody knows of.
_LAUNCHER = ["/bin/sh", "-c", 'echo "$$" >&0; exec "$@" </dev/null', "sh"]

_LOG_TAIL = 4096


class TargetNotReady(Exception):
    """The target could not be started. The message is one line: what happened, and where to look."""


class KilledWhileStarting(Exception):
    """A fault killed, ended or froze the target before it was ready: nobody's failure."""


class TargetProcess:
    """One target, over all its restarts. `port` stays the same, `epoch` counts the starts from 1."""

    def __init__(
        self,
        target: Target,
        *,
        data_dir: Path,
        log_path: Path,
        extra_env: Mapping[str, str],
        record: Append,
        extra_args: Sequence[str] = (),
    ) -> None:
        self._target = target
        self._command = command_line(target.start or (), extra_args)
        self._data_dir = data_dir
        self._log_path = log_path
        self._extra_env = extra_env
        self._record = record
        self._process: asyncio.subprocess.Process | None = None
        self._exit: asyncio.Task[int] | None = None
        self._watchdog = _Watchdog()
        self._asked: Literal["run", "end", "die"] = "run"
        self._frozen = False
        self._changing = asyncio.Lock()
        self.port = ports.free_port() if target.port is None else target.port
        self.epoch = 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Of the running or the last process; it is the number of its group too."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Returns when the target answers. TargetNotReady, with nothing left running, if it does not;
        KilledWhileStarting if `kill`, `term` or `pause` came first."""
        async with self._changing:
            if self.alive:
                raise RuntimeError("the target runs already")
            await self._start()

    async def ensure_running(self) -> None:
        """Whatever became of the target, it runs afterwards: a frozen one goes on, one that was asked to
        end gets its grace, what is dead starts again, and one that lives is left alone. Whoever else
        asks meanwhile gets the same process. Raises as `start` does."""
        async with self._changing:
            if self._asked != "run":
                await self._end()
            elif self._frozen:
                await self.cont()
            if not self.alive:
                await self._start()

    async def kill(self) -> None:
        """SIGKILL to the whole group; returns when the process is gone."""
        if self.alive and self._asked != "die":
            self._asked = "die"
            self._note("kill")
            self._signal(signal.SIGKILL)
        await self._gone()

    async def term(self) -> None:
        """Ask the group to end, by the stop signal of the target file."""
        if self.alive:
            self._note("term")
            self._asked = "end"
            self._signal(signal.Signals[self._target.stop_signal])

    async def pause(self) -> None:
        """Freeze the group; its sockets stay open."""
        if self.alive:
            self._note("pause")
            self._frozen = True
            self._signal(signal.SIGSTOP)

    async def cont(self) -> None:
        """Let a frozen group go on."""
        if self.alive:
            self._note("continue")
            self._frozen = False
            self._signal(signal.SIGCONT)

    async def restart(self) -> None:
        """Start again with the same data and port. A process asked to end gets its grace; another
        one that still runs is killed. Restarts that find it dead at the same time start it once."""
        await self._end()
        await self.ensure_running()

    async def stop(self) -> None:
        """End the target for good: politely, after the grace by force."""
        await self.term()
        await self._end()
        await self._watchdog.close()

    async def _start(self) -> None:
        self._asked, self._frozen = "run", False
        try:
            await self._port_is_free()
            await self._launch()
            await self._until_ready()
        except BaseException as error:
            overtaken = self._frozen or self._asked != "run"
            await self.kill()
            await self._watchdog.close()
            if overtaken and isinstance(error, TargetNotReady):
                raise KilledWhileStarting(str(error)) from None
            raise
        self._note("ready")

    async def _end(self) -> None:
        if self._asked == "end":
            if self._frozen:
                await self.cont()
            await _within(self._target.restart_grace_s, self._gone())
        await self.kill()

    async def _gone(self) -> None:
        if self._exit is not None:
            await asyncio.shield(self._exit)

    async def _port_is_free(self) -> None:
        grace = self._target.restart_grace_s if self.epoch else 0.0
        deadline = asyncio.get_running_loop().time() + grace
        while not ports.is_free(self.port):
            if asyncio.get_running_loop().time() >= deadline:
                if self._target.port is not None and not self.epoch:
                    raise UsageError(f"port {self.port} of the target file is taken: end what listens there")
                raise TargetNotReady(f"port {self.port} is taken by a process that is not the target; end it")
            await asyncio.sleep(0.02)

    async def _launch(self) -> None:
        inherited = {**os.environ, **self._target.env}
        if executable(self._command[0], self._target.cwd, inherited.get("PATH")) is None:
            raise TargetNotReady(
                f"command not found: `{self._command[0]}`; look at `start` in the target file"
            )
        env = environment(
            self._target, inherited=os.environ, port=self.port, data_dir=self._data_dir, extra=self._extra_env
        )
        self._data_dir.mkdir(parents=True, exist_ok=True)
        pipe = await self._watchdog.pipe()
        # Straight into a file: a pipe that nobody reads could block the target.
        log = os.open(self._log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            process = await asyncio.create_subprocess_exec(
                *_LAUNCHER,
                *self._command,
                stdin=pipe,
                stdout=log,
                stderr=log,
                cwd=self._target.cwd,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            raise TargetNotReady(f"`{self._command[0]}` cannot be started: {error}") from None
        finally:
            os.close(log)
        self._process = process
        self.epoch += 1
        self._note("start")
        self._exit = asyncio.create_task(self._watch(process))

    async def _watch(self, process: asyncio.subprocess.Process) -> int:
        code = await process.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # children that outlived their leader
        self._watchdog.disarm(process.pid)
        self._note("exit", code=code)
        return code

    async def _until_ready(self) -> None:
        backoff = 0.005
        timeout = aiohttp.ClientTimeout(total=5.0)
        try:
            async with (
                asyncio.timeout(self._target.ready_timeout_s),
                aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session,
            ):
                while not await self._is_ready(session):
                    if self._exit is not None and await _within(backoff, self._gone()):
                        raise TargetNotReady(f"the target {_ended(self._exit.result())}; {self._log_hint()}")
                    backoff = min(backoff * 2, 0.05)
        except TimeoutError:
            raise TargetNotReady(
                f"the target did not get ready: {self._url()} never answered below 500 "
                f"within {self._target.ready_timeout_s:g} s; {self._log_hint()}"
            ) from None

    async def _is_ready(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(self._url(), allow_redirects=False) as answer:
                status = answer.status
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False
        if status >= 500 or not self.alive or self.pid is None:
            return False
        whose = ports.listener(self.port, self.pid)
        if whose == "foreign":
            raise TargetNotReady(
                f"port {self.port} is answered by a process outside the target's process group; "
                "start the server in the foreground, without a daemon"
            )
        return whose != "nobody"

    def _url(self) -> str:
        return f"http://{ports.LOOPBACK}:{self.port}{self._target.ready}"

    def _log_hint(self) -> str:
        line = _last_line(self._log_path)
        return f"see {self._log_path}" + (f', which ends: "{line}"' if line else ", which is empty")

    def _note(self, action: str, **more: int) -> None:
        self._record("process", "process", {"epoch": self.epoch}, {"action": action, "pid": self.pid, **more})

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


class _Watchdog:
    """The kit's end of the watchdog: one process per target, kept over restarts."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._pipe = -1

    async def pipe(self) -> int:
        """The pipe that a launcher writes its group to; starts the watchdog when there is none."""
        if self._pipe < 0:
            read_end, self._pipe = os.pipe()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *[sys.executable, "-I", "-S", watchdog.__file__],
                    stdin=read_end,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            except BaseException:
                os.close(self._pipe)
                self._pipe = -1
                raise
            finally:
                os.close(read_end)
        return self._pipe

    def disarm(self, group: int) -> None:
        """The group is gone; its number may be another's soon."""
        with suppress(OSError):
            os.write(self._pipe, b"-%d\n" % group)

    async def close(self) -> None:
        """End of file: the watchdog ends, and whatever is still armed with it. May be called again, also
        after a call that was cancelled."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self._process is not None:
            await self._process.wait()
            self._process = None


async def _within(seconds: float, what: Awaitable[None]) -> bool:
    """Whether it came to an end in time."""
    try:
        async with asyncio.timeout(seconds):
            await what
    except TimeoutError:
        return False
    return True


def _ended(code: int) -> str:
    if code < 0:
        return f"was ended at once by signal {-code}"
    return f"exited at once with code {code}"


def _last_line(path: Path) -> str:
    """The last line with text in it, printable and at most 200 characters."""
    with path.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL))
        lines = log.read(_LOG_TAIL).decode(errors="replace").splitlines()
    shown = ["".join(c if c.isprintable() else " " for c in line).strip() for line in lines]
    return next((line for line in reversed(shown) if line), "")[:200]
