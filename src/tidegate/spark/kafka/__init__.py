"""Kafka around Spark: a broker of our own, a producer that follows a profile, the connector."""
