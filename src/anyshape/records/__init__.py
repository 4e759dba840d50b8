"""The frozen records that stages hand to one another: data, no work."""
