"""How hypothesis draws: the same examples on every run, unless a hunt is asked for.

`pytest --hypothesis-profile=wide` draws many new ones; tests that bound their examples keep the bound.
"""

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.register_profile("wide", derandomize=False, max_examples=3000, print_blob=True)
settings.load_profile("steady")
