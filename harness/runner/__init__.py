"""Runs trials. Takes its services as arguments; knows protocols, records, and the adaptive engine's choices."""
