"""The resources that the feed reports: validated, stored, with their last valid revisions."""
