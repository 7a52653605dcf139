"""Values to text for people. Reads nothing of the world."""
