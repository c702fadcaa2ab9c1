"""Argosy's packing next to the proven optimum and to plain rules, on seeded fleets of several families."""
