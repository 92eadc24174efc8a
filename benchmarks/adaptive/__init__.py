"""The evidence for the adaptive engine: `python -m benchmarks.adaptive COMMAND` (see `__main__`)."""
