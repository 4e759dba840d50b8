"""A result as one HTML file: facts -> data, charts and texts -> templates -> a page that needs nothing else.

Files, in the order in which data flows:

    page_facts       what a page is made of
    explorer_data    data of the size explorer
    trees            expressions as JSON, for the page's arithmetic
    size_cells       what is known of sizes, as cells of a map
    charts           maps and bars as SVG
    page_maps        the charts of a page, with titles
    graph_map        summary of an ONNX graph
    page_graph       that graph as rows
    source_excerpts  lines of the user's code, and fixes as diffs
    shown_text       names and messages as safe text
    page_view        words and rows for the templates
    render_page      facts -> HTML
    comparison_page  the page of two files
    many_page        the page of many models
"""
