"""Feasibility, objective, search and explanation: desired state and inventory to a plan. Pure."""
