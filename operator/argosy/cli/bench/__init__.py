"""`argosy bench`: its inputs, and the result as a table, a document and a picture."""
