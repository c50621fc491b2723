"""How a run ends, and a command: the exit code of every error, and which of several decides.

0 as expected, 1 unexpected failure or pass, 2 inconclusive or nothing checked: these the verdicts say.
3 the kit itself broke, 4 usage, 5 the target never became ready, 130 interrupted: these come before them,
3 before 4 before 5.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterable, Iterator

from think_conformance.errors import UsageError
from think_conformance.shell.process import TargetNotReady

KIT_BROKE, USAGE, NOT_READY, INTERRUPTED = 3, 4, 5, 130


def code_of(error: BaseException) -> int:
    """The exit code of what ends by this error. Whatever a user did not cause is the kit's own fault."""
    match error:
        case UsageError():
            return USAGE
        case TargetNotReady():
            return NOT_READY
        case KeyboardInterrupt() | CancelledError():
            return INTERRUPTED
        case _:
            return KIT_BROKE


def gravest(errors: Iterable[BaseException]) -> BaseException:
    """The one of several errors, groups of them included, that decides how all ends."""
    return min(_single(errors), key=code_of)


def _single(errors: Iterable[BaseException]) -> Iterator[BaseException]:
    for error in errors:
        if isinstance(error, BaseExceptionGroup):
            yield from _single(error.exceptions)
        else:
            yield error
