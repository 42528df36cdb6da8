"""Knowledge bases of rag nodes. spec: "rag", "Knowledge base lifecycle".

    documents ─▶ chunks ─▶ embeddings ─┐
    (files, folders, addresses)        ├─▶ base ─▶ search ─▶ context and sources
                  <node-id>.yaml ──────┘
                     (store)

`provision` decides whether a base is loaded or built. All that leaves the run, addresses of documents and the
embedding model, are HTTP requests through `http_client`, so stubs, recordings and the real thing answer them alike.
"""
