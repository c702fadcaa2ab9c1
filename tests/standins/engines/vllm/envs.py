"""Variables of the environment: whether they are read once is in `cached`."""

cached = False


def enable_envs_cache():
    global cached
    cached = True
