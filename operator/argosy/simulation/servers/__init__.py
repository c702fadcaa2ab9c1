"""One replica of a model, as a queue before instances: which requests it takes, when each is started and done."""
