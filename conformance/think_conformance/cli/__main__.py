"""`python -m think_conformance.cli`."""

from think_conformance.cli import main

main()
