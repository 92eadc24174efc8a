"""What was used and what it costs: usage dialects, dated prices, and the fold of a span tree into a bill."""
