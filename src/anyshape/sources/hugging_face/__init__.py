"""`hf:PATH_OR_ID`: a model of transformers, from a folder or from the cache.

Files, in the order in which data flows:

    kind              the story: name -> files
    snapshots         PATH_OR_ID -> a folder
    loaded_models     that folder -> config, class, weights
    tasks             task -> class
    config_facts      numbers of inputs, from the config
    input_plan        inputs as a table: name, axes, kind of values
    single_models     models of one file
    decoders          decoders with a cache
    encoder_decoders  encoder, first step, next steps
    named_calls       modules whose inputs and outputs have the clients' names
    companions        config and tokenizer beside the file
"""
