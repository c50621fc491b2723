"""The actions of a plan, one module each, named as the plan names them.

A module offers `async def act(link, value)`: what the action with this value does to the connection
it struck. Adding an action is adding a file; carriers still have to declare that they do it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from think_proxy.link import Link

Act = Callable[[Link, Any], Awaitable[None]]

ACTS: dict[str, Act] = {
    module.name: import_module(f"{__name__}.{module.name}").act for module in iter_modules(__path__)
}
