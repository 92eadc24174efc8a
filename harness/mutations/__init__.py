"""Wrong references made from right ones: declared mutations, and operators on scripts and diffs."""
