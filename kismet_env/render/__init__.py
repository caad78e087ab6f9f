"""What a human sees: made from a position, without any change to the game."""
