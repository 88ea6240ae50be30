"""Five applications of Intel's storm-benchmark, which MST measures: lines of text and of logs."""
