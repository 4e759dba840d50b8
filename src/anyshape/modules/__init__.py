"""The user's module, kept safe: its lines, its state, its flat form."""
