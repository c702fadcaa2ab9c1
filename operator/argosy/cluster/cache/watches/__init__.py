"""Lists and watches of one kind each, begun again when they break."""
