"""From task reports and Spark's progress to one measurement per tick."""
