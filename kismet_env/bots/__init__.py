"""The built-in players, one file each."""
