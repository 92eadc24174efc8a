"""The solvers that Assay ships. Each is a plug-in like a user's own, found by entry point."""
