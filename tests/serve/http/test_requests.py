"""Routes that compute."""

import pytest
from fastapi import APIRouter, Request

from lpcfg.protocol.schemas import TreesRequest
from lpcfg.serve.http.requests import GuardedRoute


def test_a_body_comes_with_the_request_and_the_service_alone() -> None:
    async def endpoint(body: TreesRequest, request: Request, name: str) -> None:
        """Take what no guarded endpoint takes."""

    with pytest.raises(TypeError, match="takes body, request, service"):
        APIRouter(route_class=GuardedRoute).post("/a")(endpoint)
