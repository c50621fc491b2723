"""The reference as a process, for the tests in here."""

from reference_process import dial, fake_model, http, outside, server

__all__ = ["dial", "fake_model", "http", "outside", "server"]
