"""What the paper's text tells of figures 7 to 10. It prints few numbers, and draws the rest."""

from dataclasses import dataclass

from tidegate.papers.figure import Value
from tidegate.papers.flink_er.experiments import CAMPAIGNS, LEARNING, SENTIMENT, WORDCOUNT


@dataclass(frozen=True, slots=True)
class PaperSays:
    """What it tells of one figure; None where it tells nothing."""

    static_latency: Value = None
    flow_latency: Value = None
    static_throughput: Value = None
    flow_throughput: Value = None
    when: Value = None
    """When its strategy rescheduled, in minutes."""
    static_cpu: Value = None


SAID = {
    WORDCOUNT.figure: PaperSays(
        static_latency="grows, above 0.9 s",
        flow_latency="rises, then falls",
        when="5 to 8",
    ),
    SENTIMENT.figure: PaperSays(
        static_throughput="falls as the load rises", flow_throughput="higher (drawn)"
    ),
    LEARNING.figure: PaperSays(
        static_throughput="below 80,000",
        flow_throughput="higher (drawn)",
        static_cpu="near 100 %",
    ),
    CAMPAIGNS.figure: PaperSays(
        static_latency="grows",
        flow_latency="falls",
        flow_throughput="higher (drawn)",
        when="10 to 13",
    ),
}
