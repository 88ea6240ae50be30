"""TwitterSentiment: the mood of each user, from the sentiment of their tweets (Flink-ER 4.2)."""
