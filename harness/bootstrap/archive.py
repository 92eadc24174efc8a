"""A root file system as a loadable image whose digest depends on its content alone.

`docker import` stamps the hour of the import into the image's configuration, so that equal content gets another digest
each time and every lock file on the next machine is void. Writing the configuration ourselves and loading it
(`docker load`) leaves the stamp to the recipe.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What goes into the image's configuration. `architecture` in Debian's words (which Docker shares)."""

    reference: str
    architecture: str
    environment: Mapping[str, str]
    command: tuple[str, ...]
    labels: Mapping[str, str]
    created_s: int
    created_by: str


def hash_file(path: Path) -> str:
    """`sha256:…` of a file of any size."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_READ_BYTES):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def encode_config(config: ImageConfig, layer_digest: str) -> bytes:
    """The image configuration (OCI image-spec, config.md) of one uncompressed layer; equal input, equal bytes."""
    created = datetime.fromtimestamp(config.created_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    value = {
        "architecture": config.architecture,
        "os": "linux",
        "created": created,
        "config": {
            "Env": [f"{name}={value}" for name, value in config.environment.items()],
            "Cmd": list(config.command),
            "Labels": dict(config.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        "history": [{"created": created, "created_by": config.created_by}],
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def write_archive(layer: Path, config: ImageConfig, output: Path) -> str:
    """Write the archive that `docker load` reads, and return the image's config digest (`sha256:…`)."""
    encoded = encode_config(config, hash_file(layer))
    name = hashlib.sha256(encoded).hexdigest()
    manifest = [{"Config": f"{name}.json", "RepoTags": [config.reference], "Layers": ["layer.tar"]}]
    with tarfile.open(output, "w") as archive:
        for member, body in ((f"{name}.json", encoded), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(member)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
        archive.add(layer, "layer.tar")
    return f"sha256:{name}"
