"""Knowledge bases of rag nodes. spec: "rag", "Knowledge base lifecycle".

    documents ─▶ chunks ─▶ embeddings ─┐
    (files, folders, addresses)        ├─▶ base ─▶ search ─▶ context and sources
                  <node-id>.yaml ──────┘
                     (store)

`provision` loads or builds a base. Documents at addresses and embeddings are requested through `http_client`, so that
stubs, recordings and real servers can answer.
"""
