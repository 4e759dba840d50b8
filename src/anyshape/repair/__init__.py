"""Stage: files of one size -> files of many sizes: which constants hold a size, and what they are an expression of.

Files, in the order in which data flows:

    safe_model        check a file of unknown origin before use
    declared_words    `input: batch 3 224 224`, read against the file
    known_shapes      what is known of each value: axes, integers, constant
    known_constants   constants with a pattern
    followed_graph    follow declared dims through the graph, node by node
    broadcast_rules   element by element, matrices, along axes
    cutting_rules     Slice, Pad, Split
    layout_rules      moving, joining and picking axes
    network_rules     convolution, pooling, recurrent layers, attention
    reshaping_rules   Reshape, Expand, Tile, Resize, Range
    reshape_readings  which sizes a Reshape's constant can be
    search_readings   readings of all numbers that fit together
    written_sizes     edits -> nodes
    repair_findings   findings about repaired files
    source/           the same for a model's Python source
"""
