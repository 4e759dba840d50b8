"""`hf:PATH_OR_ID`: a model of transformers, from a folder or from the cache.

Files, in the order in which data flows:

    kind           the story: name -> files; models of one file
    loaded_models  PATH_OR_ID -> a folder -> config, class, weights; files beside the model
    input_plan     inputs as a table, numbers from the config, modules with the clients' names
    decoders       decoders with a cache; encoder, first step, next steps
"""
