"""Front end for Yagra workflows (LangGraph graphs written in YAML)."""
