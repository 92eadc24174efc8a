"""Figures that the README claims, each measured against a yardstick in the same run. Not part of the package."""
