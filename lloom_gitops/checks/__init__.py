"""Judges of documents and plans. They know the rules and share no code with the planner's search. Pure."""
