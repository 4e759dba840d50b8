"""A result as one HTML file: facts -> data, charts and texts -> templates -> a page that needs nothing else."""
