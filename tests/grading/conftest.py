"""The engine's base image, for what needs real containers."""

from __future__ import annotations

from tests.sandbox.conftest import base_pin

__all__ = ["base_pin"]
