"""Facts of the stages -> findings in the user's own words, one file a rule."""
