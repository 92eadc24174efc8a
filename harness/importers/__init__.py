"""Reads what other harnesses wrote: one file per format, content to records, nothing invented."""
