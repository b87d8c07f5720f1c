"""Pure functions: scans over time, masks, relative positions."""
