"""Demand for further nodes: what finds no place for lack of GPUs becomes placeholders, which node autoscalers see."""
