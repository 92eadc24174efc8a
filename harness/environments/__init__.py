"""Worlds of tools over a state, named and versioned: a benchmark's database, a device, a program behind a carrier."""
