"""Model traffic: clients that report every HTTP attempt, so that what was paid for is booked whatever came of it."""
