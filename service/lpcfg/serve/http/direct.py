"""Take requests that compute to their endpoint at once, past the layers that find one.

FastAPI's router tries one route after the other and wraps each request in several layers. All that
they do for these paths, which hold no parameters, is to find the endpoint and to answer errors.
"""

from collections.abc import Iterable

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from lpcfg.base.errors import LpcfgError
from lpcfg.serve.http import problems
from lpcfg.serve.http.bodies import GuardedRoute


class Direct:
    """Answers what has a JSON body and a fixed path, and hands everything else on."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self.app = app
        self._routes = {
            route.path: route
            for route in routes
            if isinstance(route, GuardedRoute) and route.body_field is not None
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = None
        if scope["type"] == "http" and scope["method"] == "POST" and not scope.get("root_path"):
            route = self._routes.get(scope["path"])
        if route is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = route
        request = Request(scope, receive)
        try:
            answer = await route.guarded(request)
        except (LpcfgError, RequestValidationError) as error:
            answer = problems.answer(request, error)
        await answer(scope, receive, send)
