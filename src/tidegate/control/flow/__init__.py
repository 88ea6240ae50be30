"""The bottleneck and the policy that widens it (Flink-ER)."""
