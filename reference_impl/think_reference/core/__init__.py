"""The decisions of an agent: events in, effects out. Nothing here opens, waits, draws or asks the time."""
