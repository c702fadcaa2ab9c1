"""From what runs to what is planned, one step a round: surge, drain, memory, order. Nothing here packs."""
