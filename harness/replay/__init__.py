"""Recorded episodes carried out again, compared, and graded under other rules."""
