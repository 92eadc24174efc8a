"""assay setup."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from harness.bootstrap.base_image import ensure_base_image
from harness.bootstrap.engine import ensure_engine
from harness.cli.options import AsJson, print_json, say

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: assay setup --base-image registry.example/assay-base@sha256:…")
def setup(
    base_image: Annotated[
        str, typer.Option(envvar="ASSAY_BASE_IMAGE", help="Pull this pinned image (name@sha256:…) as the base.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Start or find a container engine and build or pull the base image."""
    engine = ensure_engine(os.environ, say)
    image = ensure_base_image(engine, os.environ, say, pin=base_image)
    say(f"engine {engine.version} at {engine.address.url}: {engine.how}")
    say(f"base image {image.reference} {image.config_digest}: {image.how} in {image.seconds:.1f} s")
    if as_json:
        print_json(
            {
                "engine": {"version": engine.version, "url": engine.address.url, "how": engine.how},
                "image": {"reference": image.reference, "digest": image.config_digest, "how": image.how.value},
            }
        )
