"""The dialects: one front end each, and the table that finds them."""
