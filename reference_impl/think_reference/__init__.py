"""The reference implementation of the Think protocol: a pure core and a thin shell around it.

`core` decides, `shell` does: sockets, SQLite, timers and model calls. `agent` holds the classes an
application writes against, `defects` the deliberate faults, `cli` the command `think-reference`.
"""
