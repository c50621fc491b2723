"""A client's method call and its answer (wire protocol section 3)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from think_conformance.wire.frames import RpcRequest, RpcResponse
from think_reference.core.application import Aborted, Application


def call(application: Application, request: RpcRequest) -> RpcResponse:
    """Run the method; whatever it raises is an answer, never an error of the agent
    (WIRE-31). Raises Aborted when the application wants its agent dropped."""
    try:
        result: Any = application.method(request.method)(*request.args)
    except Aborted:
        raise
    except Exception as error:
        return RpcResponse(id=request.id, success=False, error=str(error) or "Unknown error occurred")
    return RpcResponse(id=request.id, success=True, result=UNSET if result is None else result, done=True)
