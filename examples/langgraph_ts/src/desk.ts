/** A support desk of LangGraph.js: a node that sorts a letter, and an agent with a tool that looks up orders. */

import { createInterface } from "node:readline";

import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";

const State = Annotation.Root({ ...MessagesAnnotation.spec, kind: Annotation<string> });
type Desk = typeof State.State;

const ORDERS: Record<string, string> = { A1: "sent on Monday" };
const orderStatus = tool(({ order }) => ORDERS[order] ?? "unknown", {
  name: "order_status",
  description: "Look up an order.",
  schema: z.object({ order: z.string() }),
});

const sorter = new ChatOpenAI({ model: "gpt-4o-mini", maxRetries: 2 });
const clerk = new ChatOpenAI({ model: "gpt-4o", maxRetries: 2 }).bindTools([orderStatus]);

async function sort({ messages }: Desk) {
  const Kind = z.object({ kind: z.enum(["order", "other"]) });
  const asked = [new SystemMessage("Sort the letter."), ...messages];
  return { kind: (await sorter.withStructuredOutput(Kind).invoke(asked)).kind };
}

async function answer({ messages }: Desk) {
  return { messages: [await clerk.invoke([new SystemMessage("Answer briefly."), ...messages])] };
}

const refuse = () => ({ messages: [new AIMessage("Please write to the office.")] });
const callsTool = ({ messages }: Desk) => ((messages.at(-1) as AIMessage).tool_calls?.length ? "tools" : END);

export const desk = new StateGraph(State)
  .addNode("sort", sort)
  .addNode("answer", answer)
  .addNode("refuse", refuse)
  .addNode("tools", new ToolNode([orderStatus]))
  .addEdge(START, "sort")
  .addConditionalEdges("sort", ({ kind }) => (kind === "order" ? "answer" : "refuse"), ["answer", "refuse"])
  .addConditionalEdges("answer", callsTool, ["tools", END])
  .addEdge("tools", "answer")
  .addEdge("refuse", END)
  .compile();

// One letter a line, as JSON; the nodes that ran and the answer a line, as JSON.
for await (const line of createInterface({ input: process.stdin })) {
  const path: string[] = [];
  let said = "";
  for await (const step of await desk.stream({ messages: [new HumanMessage(JSON.parse(line))] }, { streamMode: "updates" })) {
    for (const [node, update] of Object.entries(step)) {
      path.push(node);
      said = String((update as Partial<Desk>).messages?.at(-1)?.content ?? said);
    }
  }
  console.log(JSON.stringify({ path, said }));
}
