"""The contract of a file: written into its metadata, checked at each call, and enforced by the graph itself."""
