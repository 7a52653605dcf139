"""Recipes, lanes, metrics and benchmarks to variants; the one memory-budget function. Pure."""
