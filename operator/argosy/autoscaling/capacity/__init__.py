"""What one replica holds within its targets: service times, queues, and the settings of instances and windows."""
