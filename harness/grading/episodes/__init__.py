"""Graders of recorded episodes, versioned: each rule of a benchmark stays runnable beside its successors."""
