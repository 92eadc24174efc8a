"""The recipe of the base image: the list in `tasks/base/recipe.toml`, its digest, and the two ways to build it."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.records.errors import ConfigError

RECIPE_LABEL = "org.assay.base.recipe"
# Debian policy 5.6.1; the names go into a shell command of the Dockerfile.
_PACKAGE = r"^[a-z0-9][a-z0-9+.-]+$"
_APT_LEAVINGS = ("/var/lib/apt/lists/*", "/var/log/*.log", "/var/log/apt/*")


class Recipe(BaseModel):
    """What the base image holds. Paths are dpkg globs; `epoch_s` is seconds since 1970 UTC."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reference: str
    parent: str
    suite: str
    epoch_s: int = Field(ge=0)
    mirrors: tuple[str, ...]
    packages: tuple[Annotated[str, Field(pattern=_PACKAGE)], ...] = Field(min_length=1)
    excluded_paths: tuple[str, ...]
    kept_paths: tuple[str, ...]
    removed_paths: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]

    def digest(self) -> str:
        """`sha256:…` over the values in canonical JSON: comments and layout of the file do not count."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def recipe_folder() -> Path:
    """`tasks/base`: inside the installed package, or in the checkout the package is imported from."""
    root = Path(str(resources.files("harness")))
    shipped = root / "data" / "tasks" / "base"
    return shipped if shipped.is_dir() else root.parent / "tasks" / "base"


def load_recipe(folder: Path | None = None) -> Recipe:
    """Read `recipe.toml` in the folder.

    Raises:
        ConfigError: missing, not TOML, an unknown or missing key, a value of the wrong kind.
    """
    path = (folder or recipe_folder()) / "recipe.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the base image's recipe cannot be read: {error}", place=str(path)) from error
    try:
        # TOML arrays are lists; strict tuples would refuse them in Python mode but not in JSON mode.
        return Recipe.model_validate_json(json.dumps(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(first["msg"], place=f"{path}: {key}", remedy="mend the recipe") from error


def render_dockerfile(recipe: Recipe) -> str:
    """The Dockerfile of the same image, for machines without mmdebstrap. Ends in a newline."""
    rules = [f"path-exclude={path}" for path in recipe.excluded_paths]
    rules += [f"path-include={path}" for path in recipe.kept_paths]
    packages = "".join(f"      {name} \\\n" for name in recipe.packages)
    environment = " ".join(f"{name}={json.dumps(value)}" for name, value in recipe.environment.items())
    quoted = " ".join(f"'{rule}'" for rule in rules)
    return (
        "# Generated from recipe.toml by `python -m harness.bootstrap dockerfile`; change the list there.\n"
        f"FROM {recipe.parent}\n"
        f"ENV {environment}\n"
        f"RUN printf '%s\\n' {quoted} > /etc/dpkg/dpkg.cfg.d/assay-base \\\n"
        " && apt-get update -q \\\n"
        " && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \\\n"
        f"{packages}"
        " && apt-get clean \\\n"
        f" && rm -rf {' '.join([*_APT_LEAVINGS, *recipe.removed_paths])}\n"
        f"CMD {json.dumps(list(recipe.command))}\n"
    )


def mmdebstrap_argv(recipe: Recipe, architecture: str, output: Path) -> list[str]:
    """The mmdebstrap call that writes the root file system as a tar file. `architecture` in Debian's words.

    apt's options serve the build only: they and this machine's name servers leave no trace inside.
    """
    options = ('Acquire::Languages "none"', 'APT::Install-Recommends "false"', 'Acquire::Retries "3"')
    argv = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--architectures={architecture}"]
    argv += [f"--aptopt={option}" for option in options]
    argv += [f"--dpkgopt=path-exclude={path}" for path in recipe.excluded_paths]
    argv += [f"--dpkgopt=path-include={path}" for path in recipe.kept_paths]
    argv += [
        f"--include={','.join(recipe.packages)}",
        '--customize-hook=rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap"',
        '--customize-hook=: > "$1/etc/resolv.conf"; echo localhost > "$1/etc/hostname"',
        *(f'--customize-hook=rm -rf "$1{path}"' for path in recipe.removed_paths),
        recipe.suite,
        str(output),
        *recipe.mirrors,
    ]
    return argv
