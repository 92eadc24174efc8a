"""What a run says: summaries, tables and pages, each a pure function of the evidence store."""
