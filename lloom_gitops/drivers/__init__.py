"""The outside: gateways over HTTP, the gateway's config file, clock. Decides nothing."""
