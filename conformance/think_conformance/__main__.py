"""The command itself, from its first import on: Ctrl-C and SIGTERM while those run are interrupts like any
other, and what cannot be imported is no verdict."""

from __future__ import annotations

import sys
import traceback

from think_conformance import interrupts
from think_conformance.outlet import Outlet

KIT_BROKE, USAGE, INTERRUPTED = 3, 4, 130


def main() -> None:
    """Runs the command line."""
    told, said = (stream and Outlet(stream) for stream in (sys.stderr, sys.stdout))
    sys.stderr, sys.stdout = told, said
    interrupts.listen()
    code = _code()
    if said and said.error and code != KIT_BROKE:
        print(f"think-conformance: stdout cannot be written: {said.error.strerror}", file=sys.stderr)
        code = USAGE
    sys.exit(code)


def _code() -> int:
    try:
        from think_conformance.cli import main as command

        command(prog_name="think-conformance")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        print("think-conformance: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception:
        traceback.print_exc()
        print("think-conformance: the kit itself broke: please report the lines above", file=sys.stderr)
        return KIT_BROKE
    return 0


if __name__ == "__main__":
    main()
