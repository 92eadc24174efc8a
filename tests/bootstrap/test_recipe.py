"""The recipe, its digest, the two ways to build it, and an archive that is equal for equal content."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bootstrap.archive import ImageConfig, encode_config, hash_file, write_archive
from harness.bootstrap.build import follow_stream
from harness.bootstrap.recipe import Recipe, load_recipe, mmdebstrap_argv, recipe_folder, render_dockerfile
from harness.records.errors import AssayError, ConfigError

RECIPE = load_recipe()


def test_the_dockerfile_in_the_checkout_is_the_recipes() -> None:
    text = (recipe_folder() / "Dockerfile").read_text(encoding="utf-8")
    assert text == render_dockerfile(RECIPE), "run `python -m harness.bootstrap dockerfile`"


def test_the_digest_is_of_the_values_and_not_of_the_layout(tmp_path: Path) -> None:
    text = (recipe_folder() / "recipe.toml").read_text(encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(f"# another comment\n\n{text}", encoding="utf-8")
    assert load_recipe(tmp_path).digest() == RECIPE.digest()
    (tmp_path / "recipe.toml").write_text(text.replace('"jq"', '"tree"'), encoding="utf-8")
    assert load_recipe(tmp_path).digest() != RECIPE.digest()


@pytest.mark.parametrize("name", sorted(Recipe.model_fields))
def test_every_value_counts_in_the_digest(name: str) -> None:
    value = getattr(RECIPE, name)
    other: object = value + 1 if isinstance(value, int) else f"{value}x" if isinstance(value, str) else type(value)()
    assert RECIPE.model_copy(update={name: other}).digest() != RECIPE.digest()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("epoch_s = 1735689600", "epoch_s = -1"), "epoch_s"),
        (('suite = "bookworm"', "suite = 12"), "suite"),
        (('command = ["bash"]', "comand = []"), "command"),
        (('command = ["bash"]', 'command = ["bash"]\nextra = 1'), "extra"),
        (('suite = "bookworm"', "suite = "), "recipe.toml"),
        (('"bc", "bzip2"', '"bc; reboot", "bzip2"'), "packages"),
        (('"bc", "bzip2"', '"bc", "-o=x"'), "packages"),
    ],
)
def test_a_malformed_recipe_names_its_key(tmp_path: Path, change: tuple[str, str], place: str) -> None:
    text = (recipe_folder() / "recipe.toml").read_text(encoding="utf-8")
    assert change[0] in text
    (tmp_path / "recipe.toml").write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_recipe(tmp_path)
    assert place in caught.value.place


def test_no_recipe_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_recipe(tmp_path / "none")
    assert str(tmp_path) in caught.value.place


def test_mmdebstrap_is_given_all_of_the_recipe() -> None:
    argv = mmdebstrap_argv(RECIPE, "arm64", Path("/var/tmp/layer.tar"))
    include = next(argument for argument in argv if argument.startswith("--include="))
    assert tuple(include.removeprefix("--include=").split(",")) == RECIPE.packages
    assert "--architectures=arm64" in argv
    assert argv[argv.index(RECIPE.suite) + 1 :] == ["/var/tmp/layer.tar", *RECIPE.mirrors]
    assert sum(argument.startswith("--dpkgopt=path-exclude=") for argument in argv) == len(RECIPE.excluded_paths)


CONFIG = ImageConfig("assay-x:1", "amd64", {"LANG": "C.UTF-8"}, ("bash",), {"a": "b"}, 1735689600, "a test")


def write_layer(path: Path, body: bytes) -> Path:
    with tarfile.open(path, "w") as layer:
        entry = tarfile.TarInfo("hello")
        entry.size = len(body)
        layer.addfile(entry, io.BytesIO(body))
    return path


def test_equal_content_is_an_equal_image(tmp_path: Path) -> None:
    layer = write_layer(tmp_path / "layer.tar", b"hello")
    digest = write_archive(layer, CONFIG, tmp_path / "one.tar")
    assert write_archive(layer, CONFIG, tmp_path / "two.tar") == digest
    assert write_archive(write_layer(tmp_path / "b.tar", b"other"), CONFIG, tmp_path / "three.tar") != digest


def test_the_archive_holds_together(tmp_path: Path) -> None:
    layer = write_layer(tmp_path / "layer.tar", b"hello")
    digest = write_archive(layer, CONFIG, tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as archive:
        members = {member.name: archive.extractfile(member) for member in archive}
        bodies = {name: stream.read() for name, stream in members.items() if stream is not None}
    (manifest,) = json.loads(bodies["manifest.json"])
    assert manifest["RepoTags"] == ["assay-x:1"]
    config = bodies[manifest["Config"]]
    assert f"sha256:{hashlib.sha256(config).hexdigest()}" == digest
    (diff_id,) = json.loads(config)["rootfs"]["diff_ids"]
    assert diff_id == f"sha256:{hashlib.sha256(bodies[manifest['Layers'][0]]).hexdigest()}" == hash_file(layer)
    assert json.loads(config)["created"] == "2025-01-01T00:00:00Z"


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_labels_keep_their_bytes_and_their_order_does_not_count(labels: dict[str, str]) -> None:
    def encode(values: dict[str, str]) -> bytes:
        return encode_config(ImageConfig("x:1", "amd64", {}, ("sh",), values, 0, ""), "sha256:0")

    assert encode(labels) == encode(dict(reversed(labels.items())))
    assert json.loads(encode(labels))["config"]["Labels"] == labels


def test_a_stream_that_fails_after_status_200_is_a_failure() -> None:
    lines: list[str] = []
    stream: list[dict[str, Any]] = [
        {"stream": "Step 1/2 : FROM debian\n"},
        {"status": "Downloading", "progressDetail": {}, "id": "1"},
        {"stream": "E: Unable to locate package tre\n"},
        {"error": "returned a non-zero code: 100", "errorDetail": {}},
    ]
    with pytest.raises(AssayError, match=r"non-zero code: 100.*Unable to locate package"):
        follow_stream(stream, lines.append, place="Dockerfile")
    assert lines == ["Step 1/2 : FROM debian"]
