"""What we decide: pure functions and objects of measurements, with no Spark, clock or sleep."""
