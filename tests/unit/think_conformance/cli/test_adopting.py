"""The target file that `target init` writes."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

import msgspec

from think_conformance.targets.contract import Target

TEXT = files("think_conformance.cli").joinpath("starter.toml").read_text()
LINE = re.compile(r"^(?P<off># )?(?P<key>[a-z_]+) = (?P<value>.*?) +# (?P<comment>\S.*)$", re.MULTILINE)
KEYS = {found["key"]: found for found in LINE.finditer(TEXT)}
OF_THE_REFERENCE = {"facts"}
EXAMPLES = {"port", "url", "model_listen", "effects_listen"}
"""Keys without a default: what the comment shows is one of many."""


def test_every_key_has_one_line_with_a_comment() -> None:
    assert set(KEYS) == set(Target.__struct_fields__) - OF_THE_REFERENCE
    assert len(KEYS) == len(LINE.findall(TEXT))


def test_every_key_that_is_switched_off_shows_its_default() -> None:
    plain = msgspec.convert(tomllib.loads(TEXT)["target"], Target)
    for key, found in KEYS.items():
        if found["off"] and key not in EXAMPLES:
            default = getattr(plain, key)
            shown = tomllib.loads(f"{key} = {found['value']}")[key]
            assert msgspec.convert(shown, type(default)) == default, key


def test_every_variable_of_the_contract_is_told() -> None:
    told = re.findall(r"^#   (THINK_[A-Z_]+) ", TEXT, re.MULTILINE)
    assert told == ["THINK_PORT", "THINK_DATA_DIR", "THINK_MODEL_URL", "THINK_EFFECTS_URL"]
