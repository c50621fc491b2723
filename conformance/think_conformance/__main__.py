"""The command itself, from its first import on: Ctrl-C while those run is an interrupt like any other."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Runs the command line."""
    try:
        from think_conformance.cli import main as command

        command(prog_name="think-conformance")
    except KeyboardInterrupt:
        print("think-conformance: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
