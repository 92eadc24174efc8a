"""From a history of outcomes to a bank: the models, their fits, which one to believe and how well it fits."""
