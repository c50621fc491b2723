"""Text of a plan file -> plan, with line and column of whatever is wrong in it. Pure.

YAML or JSON. Works for every plan type, the kit's larger one included.
"""

from __future__ import annotations

import re
from math import inf
from typing import Any, TypeVar

import msgspec
import yaml

T = TypeVar("T")

MAX_NODES = 200_000
"""Values of a plan; each alias counts as all that it stands for."""

_PATH = re.compile(r" - at (?:`key` in )?`\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_UNKNOWN = re.compile(r"unknown field `(.*?)`")


class PlanError(ValueError):
    """A plan that cannot be read, in one line: `name:line:column: what is wrong`."""


def load(text: str, name: str, type: type[T]) -> T:
    """The plan in `text`. `name` is what errors call the file; line and column count from 1."""
    node, value = _parse(text, name)
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        what = _PATH.sub("", str(error))
        raise PlanError(f"{name}:{_place(node, str(error))}: {what}") from None


def _parse(text: str, name: str) -> tuple[yaml.Node | None, Any]:
    """The value, and the same as nodes, which know where they stand."""
    try:
        return _parse_json(text) or _parse_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise PlanError(f"{name}:{place}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise PlanError(f"{name}:1:1: {str(error).splitlines()[0]}") from None


def _parse_yaml(text: str) -> tuple[yaml.Node | None, Any]:
    node = yaml.compose(text, yaml.SafeLoader)
    if node is not None and _size(node, {}) > MAX_NODES:
        raise ValueError(f"its aliases make more than {MAX_NODES} values of it")
    return node, yaml.safe_load(text)


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """How many values a node has when its aliases are spelled out; endless for one that holds itself."""
    if id(node) not in known:
        known[id(node)] = inf
        below = node.value if isinstance(node, yaml.CollectionNode) else []
        parts = [part for item in below for part in (item if isinstance(item, tuple) else (item,))]
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]


def _parse_json(text: str) -> tuple[yaml.Node | None, Any] | None:
    """None for what is not JSON. YAML reads some JSON differently (1e5) or not at all (tabs)."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return yaml.compose(text.replace("\t", " "), yaml.SafeLoader), value


def _place(node: yaml.Node | None, error: str) -> str:
    """Where the offending value stands; for a field that must not be there, its name."""
    path = _PATH.search(error)
    steps = _STEP.findall(path[1]) if path else []
    for field, index in steps:
        below = _below(node, field, index)
        if below is None:
            break
        node = below
    unknown = _UNKNOWN.search(error)
    if unknown and isinstance(node, yaml.MappingNode):
        node = next((key for key, _ in node.value if key.value == unknown[1]), node)
    mark = node.start_mark if node else None
    return f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"


def _below(node: yaml.Node | None, field: str, index: str) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and index:
        items: list[yaml.Node] = node.value
        return items[int(index)]
    if isinstance(node, yaml.MappingNode) and field:
        return next((value for key, value in node.value if key.value == field), None)
    return None
