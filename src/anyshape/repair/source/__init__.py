"""Repair of a module's source: numbers and tables of one size in the user's lines -> edits that follow the inputs."""
