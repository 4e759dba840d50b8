"""Files of one size -> files of many sizes, and back: which constants hold a size, and what they are an expression of."""
