"""Nexmark: queries over an auction house's persons, auctions and bids, a benchmark of others."""
