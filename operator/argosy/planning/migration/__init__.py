"""From what runs to what is planned, one step a round: versions, memory, surge, drain, order.

`migrate` decides the step, `next_step` says it by server. Nothing here packs, and nothing sees a rendered text.
"""
