"""Knowledge bases of rag nodes. spec: "rag", "Knowledge base lifecycle".

    documents ─▶ chunks ─▶ embeddings ─┐
    (files, folders, addresses)        ├─▶ base ─▶ search ─▶ context and sources
                  <node-id>.yaml ──────┘
                     (store)

`provision` loads or builds a base. Documents at addresses and embeddings are effects of the node, so that stubs,
recordings and real servers can answer. In a package of their own, the words of this code (`score`, `page`) are not
taken for names that Loki gives to values (harness/scenario/words.py).
"""
