"""Which way of testing would have done best on past agents: studies of many runs, the back-test, the planned bank."""
