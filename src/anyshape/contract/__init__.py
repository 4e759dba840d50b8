"""Stage: the contract of a file: written into its metadata, and enforced by the graph itself.

Files, in the order in which data flows:

    build          facts of all stages -> Contract
    graph_rules    Contract -> rules on the axes of inputs; the contract of a file of another exporter, which promises nothing
    defend         those rules as nodes of the graph
    defend_values  bounds of values as nodes of the graph
    to_json        Contract -> JSON
    from_json      JSON -> Contract
    metadata       Contract in the metadata of a file
    digest         whether a file is still the one that was verified
    file_messages  findings about files
"""
