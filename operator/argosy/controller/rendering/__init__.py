"""What a round applies in addition to the plan's servers: builds, the activator, revisions."""
