"""Whole cases: what people wrote and what was seen, and the plan that follows."""
