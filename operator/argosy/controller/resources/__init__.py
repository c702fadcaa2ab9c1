"""The resources, as the feed tells of them: validated, kept, with their last valid forms."""
