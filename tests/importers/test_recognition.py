"""Every importer by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.importers.recognition import importer_named, importer_names


@pytest.mark.parametrize("name", importer_names())
def test_every_importer_has_its_name_and_knows_nothing_of_an_empty_folder(name: str, tmp_path: Path) -> None:
    importer = importer_named(name)
    from harness.importers.container import Archive

    assert importer.name == name
    assert importer.recognises(Archive(tmp_path)) is None
