"""OCI registries: `registry` reads an image or an artifact, `layers` extracts an image's layers over each other,
`logins` gets the tokens.
"""
