"""Video logo detection: which of 16 logos are in each frame of a video (DRS V-A.1)."""
