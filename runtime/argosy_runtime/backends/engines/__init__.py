"""What the server and the engine of a language model tell each other: commands, its state, its times."""
