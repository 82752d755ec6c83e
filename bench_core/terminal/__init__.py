"""Tables, progress and wording for the terminal."""
