"""The reasons why a replica fits nowhere, with the numbers and the way out."""
