"""A plan to ordered steps, and the ApplyMachine that says which step is next. Pure."""
