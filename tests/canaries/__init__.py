"""Learners that break or cheat, and the words that their rows must have."""
