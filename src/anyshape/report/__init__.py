"""Stage: results as text for people, as JSON for machines, and as one HTML page.

Files, in the order in which data flows:

    text             results as text
    formats          tables of 80 columns, amounts of bytes, JSON, GitHub Actions
    progress_line    progress while something runs
    axes_found       the result of `anyshape axes`
    benches          the result of `anyshape bench`
    file_comparison  the result of `anyshape compare`
    page/            one HTML page
"""
