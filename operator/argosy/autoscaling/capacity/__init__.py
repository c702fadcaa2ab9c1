"""The capacity of one replica within its targets: service times, queues, and settings of instances and windows."""
