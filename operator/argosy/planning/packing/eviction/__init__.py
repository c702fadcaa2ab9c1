"""Which replicas lose their places to others that come before them, where not all have one."""
