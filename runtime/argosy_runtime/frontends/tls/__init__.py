"""TLS of the server's ports: the files of a port, and the certificate that it shows now."""
