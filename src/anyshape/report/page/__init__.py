"""A result as one HTML file: facts -> data, charts and texts -> templates -> a page that needs nothing else.

Files, in the order in which data flows:

    page_facts       what a page is made of: facts, lines of the user's code, safe text
    explorer_data    data of the size explorer, expressions as JSON
    size_cells       what is known of sizes, as cells of a map
    charts           maps and bars as SVG, with titles
    graph_map        summary of an ONNX graph, as rows
    page_view        words and rows for the templates
    render_page      facts -> HTML; the page of many models
    comparison_page  the page of two files
"""
