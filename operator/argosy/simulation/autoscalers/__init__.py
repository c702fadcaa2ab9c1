"""Who decides: the operator's own functions, and what others do, written from their documentation, to compare with."""
