"""Frozen values, ids, closed enums and errors: the words of the project. Imports nothing else of ours."""
