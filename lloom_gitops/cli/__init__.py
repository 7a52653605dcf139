"""One file a command group: parse, call, render. The only place that wires ports to drivers."""
