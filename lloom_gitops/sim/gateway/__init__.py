"""A simulated LLooM gateway: one pure node model, and the HTTP server and process around it."""
