"""The only part of the reports that touches files."""
