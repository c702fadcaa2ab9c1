"""What a round has applied beside the plan's servers: builds, the activator, revisions."""
