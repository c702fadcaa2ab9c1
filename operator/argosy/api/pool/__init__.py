"""The parts of a ServingPool's spec."""
