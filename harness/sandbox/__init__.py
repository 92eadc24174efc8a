"""Sandboxes: Docker (:mod:`harness.sandbox.provider`) and its in-memory twin (:mod:`harness.sandbox.memory`)."""
