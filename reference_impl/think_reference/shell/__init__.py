"""Does what the core asks for, in the order it asks: journal, sockets, model calls, timers."""
