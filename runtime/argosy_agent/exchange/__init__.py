"""What an agent needs of the world it reports to (`ports`), and when it writes there (`publisher`)."""
