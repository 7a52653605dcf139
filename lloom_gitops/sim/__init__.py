"""The simulated gateway: one pure node model, served over HTTP as the real one behaves."""
