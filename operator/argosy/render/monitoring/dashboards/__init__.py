"""Dashboards for Grafana: of the fleet, of one model, of one ensemble. Each is a table of panels; `grafana` alone knows
how Grafana writes them.
"""
