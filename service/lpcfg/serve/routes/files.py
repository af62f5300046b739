"""The web page: each file of `page/` at a path of its own."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

PAGE = Path(__file__).parents[1] / "page"


def page_routes(folder: Path = PAGE) -> list[Route]:
    """Create a route for each file that exists now, and `/` and `/examples` for two of them.

    No other paths exist, so no path leads out of the folder. Browsers cache the files and ask
    whether they have changed.
    """
    files = StaticFiles(directory=folder, check_dir=False)
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    routes = [_route(files, f"/{name}", name) for name in names]
    entries = {"index.html": "/", "examples.html": "/examples"}
    routes += [_route(files, path, name) for name, path in entries.items() if name in names]
    return routes


def _route(files: StaticFiles, path: str, name: str) -> Route:
    async def file(request: Request) -> Response:
        response = await files.get_response(name, request.scope)
        response.headers["cache-control"] = "no-cache"
        return response

    return Route(path, file, methods=["GET"], include_in_schema=False)
