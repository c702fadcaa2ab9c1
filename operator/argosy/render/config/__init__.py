"""The content of a `config.pbtxt`, and the rules by which resources are checked against it."""
