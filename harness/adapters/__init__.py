"""The adaptive engine inside other people's runners: one file each, each importing its runner only when it is used."""
