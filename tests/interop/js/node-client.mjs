// The official client without React: AgentClient, WebSocketChatTransport and the chat of the AI SDK.
// What an integration has to add is here and nothing else: the state, and the calls that hand frames of
// the resume handshake to the transport.
import { AgentClient } from "agents/client";
import { getAgentMessages } from "agents/chat/react";
import { WebSocketChatTransport } from "agents/chat/transport";
import { AbstractChat } from "ai";
import WebSocket from "ws";

globalThis.WebSocket = WebSocket;

class State {
  #shown = { status: "ready", error: undefined, messages: [] };
  #changed;

  constructor(changed, messages) {
    this.#changed = changed;
    this.#shown.messages = messages;
  }

  #set(key, value) {
    this.#shown = { ...this.#shown, [key]: value };
    this.#changed(this.#shown);
  }

  get status() { return this.#shown.status; }
  set status(status) { this.#set("status", status); }
  get error() { return this.#shown.error; }
  set error(error) { this.#set("error", error); }
  get messages() { return this.#shown.messages; }
  set messages(messages) { this.#set("messages", messages); }

  pushMessage(message) { this.messages = [...this.messages, message]; }
  popMessage() { this.messages = this.messages.slice(0, -1); }
  replaceMessage(index, message) { this.messages = this.messages.with(index, this.snapshot(message)); }
  snapshot(thing) { return structuredClone(thing); }
}

class Chat extends AbstractChat {
  constructor(state, transport) { super({ state, transport }); }
}

export class NodeClient {
  constructor(where, tell) {
    this.where = where;
    this.tell = tell;
  }

  async open() {
    const messages = await getAgentMessages({ ...this.where, host: `http://${this.where.host}` });
    const agent = new AgentClient({ ...this.where, protocol: "ws" });
    const transport = new WebSocketChatTransport({ agent });
    const show = ({ status, error, messages }) =>
      agent === this.agent &&
      this.tell({ shown: { status, error: error?.message ?? null, messages, busy: false } });
    const chat = new Chat(new State(show, messages), transport);
    Object.assign(this, { agent, transport, chat });
    show(chat);

    agent.addEventListener("message", (event) => {
      const frame = JSON.parse(event.data);
      if (frame.type === "cf_agent_chat_messages") chat.messages = frame.messages;
      else if (frame.type === "cf_agent_stream_resuming") transport.handleStreamResuming(frame);
      else if (frame.type === "cf_agent_stream_resume_none") transport.handleStreamResumeNone(frame);
      else if (frame.type === "cf_agent_stream_pending") transport.handleStreamPending();
    });
    agent.addEventListener("open", () => {
      this.tell({ opened: 1 });
      if (!transport.retryPendingResume()) chat.resumeStream();
    });
    await new Promise((opened) => agent.addEventListener("open", opened, { once: true }));
  }

  send(text) { this.chat.sendMessage({ text }); }
  leave() { this.agent.close(); }
  close() { this.agent.close(); }
  back() { return this.open(); }

  stop() {
    this.transport.cancelActiveServerTurn();
    return this.chat.stop();
  }

  async refresh() {
    this.leave();
    await this.back();
  }
}
