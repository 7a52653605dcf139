"""Door for the head's HTTP service; empty until membership lands."""
