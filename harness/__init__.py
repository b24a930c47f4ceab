"""What runs inside the fresh child process; the only code that drives torch."""
