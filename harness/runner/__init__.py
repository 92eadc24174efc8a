"""Runs trials. Takes its services as arguments and knows only protocols and records."""
