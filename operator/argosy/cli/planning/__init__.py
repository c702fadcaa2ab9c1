"""Commands that place models on nodes without starting anything: a plan, or the repositories that it renders to."""
