"""The operator's Prometheus metrics: of its own work, of statuses, and of scaling's estimates."""
