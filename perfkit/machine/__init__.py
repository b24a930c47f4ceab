"""Is this machine fit to measure on: GPU facts and watch, CPU load, checks, cached peaks."""
