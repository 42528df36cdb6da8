"""Answers questions from a handbook: a retriever by keywords, and one by an in-memory vector store."""

from typing import TypedDict

from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import START, StateGraph

PAGES = [
    Document("Skis are rented until five in the evening.", id="skis", metadata={"page": 3}),
    Document("Helmets are free for children under twelve.", id="helmets", metadata={"page": 4}),
    Document("Avalanche beacons need a deposit of 100 francs.", id="beacons", metadata={"page": 9}),
]
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Answer from these pages only:\n{pages}"), ("user", "{question}")]
)


class KeywordRetriever(BaseRetriever):
    """Finds the pages that share a word of more than three letters with the question."""

    pages: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        words = {word for word in query.lower().split() if len(word) > 3}
        return [page for page in self.pages if words & set(page.page_content.lower().rstrip(".").split())]


class State(TypedDict, total=False):
    question: str
    pages: list[Document]
    answer: str


def build(retriever):
    def retrieve(state: State):
        return {"pages": retriever.invoke(state["question"])}

    def answer(state: State):
        chain = PROMPT | ChatAnthropic(model="claude-sonnet-5-5", max_tokens=500)
        pages = "\n".join(f"[{page.metadata['page']}] {page.page_content}" for page in state["pages"])
        return {"answer": chain.invoke({"pages": pages, "question": state["question"]}).text}

    def nothing(state: State):
        return {"answer": "The handbook does not say."}

    builder = StateGraph(State)
    builder.add_node(retrieve).add_node(answer).add_node(nothing)
    builder.add_edge(START, "retrieve")
    builder.add_conditional_edges(
        "retrieve", lambda state: bool(state["pages"]), {True: "answer", False: "nothing"}
    )
    return builder.compile()


def by_words():
    return build(KeywordRetriever(pages=PAGES))


async def by_vectors(config):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=32))
    await store.aadd_documents(PAGES)
    count = config["configurable"].get("pages", 2)
    return build(store.as_retriever(search_kwargs={"k": count}))
