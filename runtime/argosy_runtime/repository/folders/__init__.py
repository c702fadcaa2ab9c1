"""Models as files: what lies in the repositories, what changed there, what load requests brought along.

All of it blocks on the disk, and is called in threads; nothing here knows what a configuration means.
"""
