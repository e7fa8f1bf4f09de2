"""``toolenvs serve``: what environments use, for programs that are not this one."""

from __future__ import annotations

from typing import Annotated

import typer

from toolenvs.cli.terminal import note

serve_app = typer.Typer(help="Serve parts of it to other programs.", no_args_is_help=True)


@serve_app.callback()
def _serve() -> None:
    """Serve parts of it to other programs."""


@serve_app.command("search")
def search(
    corpus: Annotated[str, typer.Option(help="A file or folder of passages; see docs/search.md.")],
    backend: Annotated[str, typer.Option(help="bm25, dense or hybrid.")] = "bm25",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8000,
    top_k: Annotated[int, typer.Option(min=1, help="Passages for a request without topk.")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Searches at once.")] = 4,
) -> None:
    """Answer Search-R1's route /retrieve over a corpus, until Ctrl-C."""
    from toolenvs.errors import UsageError

    try:
        from toolenvs.serving.running import address, listen, serve
        from toolenvs.serving.search import SearchServer
    except ImportError as error:
        raise UsageError(
            f"serving needs the package {error.name!r}: pip install 'PATH-OF-THE-CLONE[serve]'."
        ) from None
    from toolenvs import backends
    from toolenvs.corpora import load_corpus
    from toolenvs.serving.limits import SearchLimits

    passages = load_corpus(corpus)
    made = backends.make(backend, corpus=passages)
    taken = listen(host, port)
    note(f"{len(passages)} passages; their index is opened, or built if this machine has none yet")
    getattr(made, "prepare", lambda: None)()
    limits = SearchLimits(top_k=top_k, threads=threads)
    server = SearchServer(made, passages=len(passages), limits=limits)
    where = address(taken)
    serve(
        server.app,
        taken,
        started=lambda: typer.echo(f"search answers at {where}/retrieve"),
        ended=lambda: note("search has ended: it answers no more"),
    )
