"""`lpcfg serve`: run the HTTP service."""

from typing import Annotated

import typer

from lpcfg.cli import interrupts
from lpcfg.cli.options import Store
from lpcfg.cli.terminal import note, result_table


def serve(
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="NAME, NAME@VERSION or path; by default LPCFG_MODEL.",
        ),
    ] = None,
    store: Store = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Warm the models, print what would be served, and end."),
    ] = False,
) -> None:
    """Serve a model over HTTP, with a web page at / and the API's description at /docs.

    All other settings are in the environment: see docs/settings.md. Logs are JSON lines on stderr.
    """
    from lpcfg.serve.edge import server
    from lpcfg.settings import misspelt_settings, read_settings

    settings = read_settings(model=model, model_store=store, host=host, port=port)
    for misspelt in misspelt_settings():
        note(misspelt)
    if check:
        result_table([(str(one), one.hash) for one in server.check(settings)])
    else:
        server.serve(settings, on_start=interrupts.end_gently)
