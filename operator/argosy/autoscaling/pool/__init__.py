"""A whole pool's round: policies of what specs say, room, decisions of every member, and the forms that follow."""
