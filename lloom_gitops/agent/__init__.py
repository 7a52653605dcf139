"""Turns of the agent (observe, plan, apply, write back) and the journal. Takes ports, imports no driver."""
