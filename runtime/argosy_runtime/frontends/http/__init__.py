"""The HTTP front end: connections, routes, and the endpoints of the V2 protocol with Triton's extensions."""
