"""The second body: imitates a pipeline by discrete events, to try a decision before it counts."""
