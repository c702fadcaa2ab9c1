"""Why something fits nowhere, with the numbers and the way out."""
