"""The throughput that m machines sustain, with its uncertainty (MST)."""
