"""`hf:PATH_OR_ID`: a model of transformers, from a folder or from the cache."""
