"""`planner mcp`: the planner as tools of an agent, over stdio or HTTP on loopback."""

from __future__ import annotations

import click


@click.command()
@click.option("--http", is_flag=True, help="Streamable HTTP on loopback instead of stdio.")
@click.option("--port", type=click.IntRange(1, 65535), default=8765, help="Port of --http.")
def command(http: bool, port: int) -> None:
    """Serve eight read-only tools to an agent by the Model Context Protocol."""
    try:
        from planner.handover.agents import loopback, server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        text = "mcp is not installed; this needs: pip install 'decode-planner[mcp]'"
        raise click.ClickException(text) from None
    made = server()
    if http:
        made.run("streamable-http", host="127.0.0.1", port=port, transport_security=loopback(port))
    else:
        made.run("stdio")
