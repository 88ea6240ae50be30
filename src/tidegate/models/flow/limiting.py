"""When a cut limits a flow (Flink-ER eq. 11)."""

LIMITING = 0.85
"""lambda of eq. 11: a cut is limiting from this share of its capacity on."""
