"""One version of a model in service: its instances, its queue, what stands before and behind them."""
