"""Assay: an agent-evaluation harness that measures the agent and the instrument.

Importing this package does nothing: no banner, no folder made, no environment read, no network.
The documented Python entry points are in :mod:`harness.api`.
"""
