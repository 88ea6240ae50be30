"""DRS's experiments (section V): logo detection and frequent patterns."""
