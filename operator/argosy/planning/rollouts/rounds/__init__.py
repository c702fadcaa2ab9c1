"""One round of rollouts: `advance.py` goes through a fleet's members, `member_round.py` asks the machine for one of
them, and `rollouts.py` has the result, by which the specs to act upon replace the declared ones.
"""
