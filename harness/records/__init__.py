"""The nouns of Assay: frozen records, enums, canonical JSON and the trial transition table. No I/O."""
