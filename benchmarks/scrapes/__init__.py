"""What it costs that a server of a thousand models is measured: the server that makes the text, and who reads it."""
