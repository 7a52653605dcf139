"""Pools of LLooM gateways as a git repository: desired policy, a committed plan, an agent that applies it."""

__version__ = "0.1.0"
