"""Checkpoints on HDFS, through WebHDFS: no native library and no JVM is needed to reach them."""
