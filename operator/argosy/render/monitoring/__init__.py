"""What watches servers and the operator: recording rules, alerts and dashboards, as the chart ships them. Pure: text
made of tables, of which `argosy monitoring` writes the files.

`recording` and `alerts` hold the tables; every other expression, the dashboards' too, is built from these names.
"""
