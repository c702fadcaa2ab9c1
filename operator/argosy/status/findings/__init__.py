"""The parts of a status, one subject a module: each gives conditions' findings, or entries of a list."""
