"""Graders: what judges a sealed result. Each is versioned; nothing here raises for what a solver did."""
