"""Pictures of graphs: text, mermaid and SVG."""
