"""How fast rollouts convict bad versions, and how seldom good ones."""
