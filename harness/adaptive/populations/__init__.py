"""Simulated agents and items with a known truth: populations, lineages over time, regimes that break the model."""
