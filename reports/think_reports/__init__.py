"""Reliability reports, made from run directories and from nothing else.

The door: an entry point in the group `think_conformance.reports` is a function `(run_dir: Path)` that reads
the directory and either writes its file and returns its path, or, for the format shown on a
terminal, returns the text. `shell.files.report(run_dir)` gives it the `RunReport`, `shell.files.write`
writes whole or not at all. Formats of third parties come in by the same door.
"""
