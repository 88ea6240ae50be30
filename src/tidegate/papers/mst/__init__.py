"""MST's experiments (sections IV and V), by `tidegate paper mst`."""
