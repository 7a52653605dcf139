"""YAML and JSON Schema to values and back: line numbers, canonical bytes, digests. Knows no rule of the domain."""
