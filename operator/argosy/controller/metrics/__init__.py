"""The operator's metrics, as Prometheus reads them: of its own work, of statuses, and of what scaling estimates."""
