"""Reports on finished runs: the leaderboard in the terminal and as an HTML page."""
