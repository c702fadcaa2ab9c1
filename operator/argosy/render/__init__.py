"""Pure rendering: what was decided becomes what is read. A plan becomes model repositories.

Values in, values out: no file is written here, no clock read, nothing asked. Each module renders one kind of
thing.
"""
