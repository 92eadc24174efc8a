"""The airline of tau-bench and of tau2-bench: one database, two sets of tools that differ in ways that move scores."""
