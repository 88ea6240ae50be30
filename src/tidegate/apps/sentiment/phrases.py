"""What tweets are put together from: a subject, a verb, a degree, a feeling, a contrast, an end."""

SUBJECTS = [
    "the new phone",
    "my train",
    "this song",
    "the weather",
    "our team",
    "the film",
    "that cafe",
    "my week",
    "the game",
    "this update",
    "the queue at the bank",
    "her speech",
    "the second season",
    "my neighbour's dog",
]
VERBS = ["is", "was", "seems", "looks", "sounds", "feels", "has been", "isn't", "was never"]
DEGREES = ["very", "really", "so", "totally", "somewhat", "kinda", "slightly"]
PRAISE = [
    "great",
    "good",
    "nice",
    "lovely",
    "brilliant",
    "delightful",
    "fun",
    "amazing",
    "excellent",
    "AWESOME",
]
BLAME = [
    "terrible",
    "bad",
    "awful",
    "horrible",
    "sad",
    "disappointing",
    "annoying",
    "boring",
    "ugly",
    "USELESS",
]
PLAIN = ["long", "new", "blue", "late", "early", "closed", "usual", "round"]
"""Neither praise nor blame."""
CONTRASTS = [
    "but the rest is fine",
    "but nobody cares",
    "but what a waste",
    "but I still love it",
]
ENDS = ["!", "!!!", "?", "??", ".", "...", " :)", " :(", " lol", " #fail", " #winning"]
