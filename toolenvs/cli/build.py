"""``toolenvs build``: make the image of a sandbox."""

from __future__ import annotations

from typing import Annotated

import typer

from toolenvs.cli.terminal import console, note, print_json


def build(
    name: Annotated[str, typer.Argument(help="Which sandbox image.")] = "python",
    base: Annotated[
        str,
        typer.Option(
            help="auto, debian (made here of Debian's packages: as root, on Debian or Ubuntu), or "
            "an image that holds python3."
        ),
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Build a sandbox image, unless one of the present content is there."""
    from toolenvs.images import ensure_image

    image = ensure_image(name, base, progress=note)
    if as_json:
        print_json(image)
        return
    what = "built" if image.built else "is there already"
    console().print(f"{image.reference} {what} (base {image.base})", markup=False)
