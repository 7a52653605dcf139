"""What the agent decides before and after an apply: the life of a plan. Pure."""
