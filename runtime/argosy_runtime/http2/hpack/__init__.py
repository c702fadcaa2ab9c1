"""HPACK (RFC 7541): a decoder with its tables, and an encoder that keeps none."""
