"""`python -m think_reference`."""

from think_reference.cli import main

main()
