"""`python -m harness.bootstrap [setup | doctor | dockerfile]`: what `make setup` calls before `assay` is known to work.

Progress goes to stderr. `dockerfile` rewrites `tasks/base/Dockerfile` from the recipe.
"""

from __future__ import annotations

import os
import sys

from harness.bootstrap.base_image import ensure_base_image
from harness.bootstrap.doctor import examine
from harness.bootstrap.engine import ensure_engine
from harness.bootstrap.recipe import load_recipe, recipe_folder, render_dockerfile
from harness.records.errors import AssayError, ConfigError


def report(line: str) -> None:
    """One line of progress."""
    print(line, file=sys.stderr, flush=True)


def set_up() -> None:
    """Engine, then base image; a pin from ASSAY_BASE_IMAGE."""
    engine = ensure_engine(os.environ, report)
    report(f"engine {engine.version} (API {engine.api_version}) at {engine.address.url}: {engine.how}")
    image = ensure_base_image(engine, os.environ, report, pin=os.environ.get("ASSAY_BASE_IMAGE", ""))
    report(f"base image {image.reference} {image.config_digest}: {image.how} in {image.seconds:.1f} s")


def print_doctor() -> None:
    """The checks of `assay doctor`, plainly."""
    for check in examine(os.environ):
        remedy = f" — {check.remedy}" if check.remedy else ""
        print(f"{check.status:4}  {check.name}: {check.finding}{remedy}")


def write_dockerfile() -> None:
    """Bring the generated Dockerfile up to the recipe."""
    path = recipe_folder() / "Dockerfile"
    path.write_text(render_dockerfile(load_recipe()), encoding="utf-8")
    report(f"wrote {path}")


def main(arguments: list[str]) -> int:
    """Run one command; returns the exit code."""
    commands = {"setup": set_up, "doctor": print_doctor, "dockerfile": write_dockerfile}
    try:
        if len(arguments) > 1 or (arguments and arguments[0] not in commands):
            raise ConfigError(f"unknown arguments {arguments}", remedy=f"give one of {', '.join(commands)}")
        commands[arguments[0] if arguments else "setup"]()
    except AssayError as error:
        report(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
