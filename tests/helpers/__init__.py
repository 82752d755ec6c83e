"""What several test modules share: toys, fakes, cases and references."""
