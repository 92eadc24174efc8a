"""When audits and runs are due, who carries them out, and what became of them."""
