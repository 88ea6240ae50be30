"""WordCount: how often each word occurs in a stream of lines (Flink-ER 4.2)."""
