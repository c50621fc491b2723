// A Think in one file, without dependencies: turns stream, cut sockets resume. Deliberately partial: all
// it knows is in memory, so a restart forgets; it knows no stop, no clear and no tools.

import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";

const { THINK_PORT: PORT, THINK_MODEL_URL: MODEL } = process.env;
const TYPE = { "content-type": "application/json" };
const AGENT = /^\/agents\/my-agent\/([^/?]+)(\/get-messages)?(?:\?|$)/;

class Agent {
  messages = [];
  sockets = new Set();
  turns = new Map(); // by request id: { id, state, messageIds, chunks, terminal }
  queue = Promise.resolve();
  gone = new AbortController();

  connect(socket) {
    this.sockets.add(socket);
    socket.agent = this;
    const turn = this.open();
    if (turn?.state === "streaming") this.offer(socket, turn);
    else {
      if (turn) socket.send({ type: "cf_agent_stream_pending", id: turn.id });
      socket.send({ type: "cf_agent_chat_messages", messages: this.messages, connect: true });
    }
    socket.send({ type: "cf_agent_identity", name: this.name, agent: "my-agent" });
  }

  receive(socket, frame) {
    if (frame?.type === "cf_agent_use_chat_request") this.request(socket, frame);
    if (frame?.type === "cf_agent_stream_resume_request") this.probe(socket, frame.probeId);
    if (frame?.type === "cf_agent_stream_resume_ack") this.ack(socket, frame.id);
    if (frame?.type === "rpc") this.call(socket, frame);
  }

  call(socket, { id, method, args }) {
    if (method === "evict") return this.evict();
    const known = method === "configure";
    if (known) this.options = args?.[0] ?? {};
    socket.send({ type: "rpc", id, success: known, ...(known ? { done: true } : { error: "unknown" }) });
  }

  evict() {
    agents.set(this.name, made(this.name, this.options)); // which remembers nothing
    this.gone.abort();
    for (const other of this.sockets) other.cut();
  }

  request(socket, { id, init }) {
    if (typeof id !== "string") return;
    if (this.turns.has(id)) return this.again(socket, this.turns.get(id)); // sent twice, run once
    let sent;
    try {
      sent = JSON.parse(init.body).messages.filter((message) => message.role === "user");
    } catch {
      return socket.send(terminal(id, { error: true, body: "the request cannot be read" }));
    }
    this.messages.push(...sent.filter(({ id }) => !this.messages.some((known) => known.id === id)));
    const turn = { id, state: "queued", messageIds: sent.slice(-1).map((m) => m.id), chunks: [] };
    this.turns.set(id, turn);
    this.tell({ type: "cf_agent_chat_messages", messages: this.messages }, (other) => other !== socket);
    this.queue = this.queue.then(() => this.run(turn)); // one turn at a time, in order
  }

  async run(turn) {
    const part = { type: "text", text: "", state: "done" };
    const answer = { id: randomUUID(), role: "assistant", parts: [part] };
    let end = { outcome: "completed" };
    try {
      await setTimeout(this.options.prepareDelayMs ?? 0, null, { signal: this.gone.signal });
      turn.state = "streaming";
      for (const socket of this.sockets) if (socket.parked) this.offer(socket, turn);
      this.chunk(turn, { type: "start", messageId: answer.id });
      this.chunk(turn, { type: "text-start", id: "text" });
      for await (const delta of ask(this.prompt(turn), this.gone.signal)) {
        part.text += delta;
        this.chunk(turn, { type: "text-delta", id: "text", delta });
      }
      this.chunk(turn, { type: "text-end", id: "text" });
      this.chunk(turn, { type: "finish", finishReason: "stop" });
    } catch (error) {
      end = { outcome: "error", error: true, body: String(error.message) };
    }
    turn.state = "ended";
    turn.terminal = terminal(turn.id, { messageIds: turn.messageIds, ...end });
    if (part.text) this.messages.splice(this.asked(turn) + 1, 0, answer);
    this.tell({ type: "cf_agent_chat_messages", messages: this.messages });
    this.tell(turn.terminal);
    for (const socket of this.sockets) {
      if (socket.parked && !this.open()) socket.send({ type: "cf_agent_stream_resume_none" });
      if (!this.open()) socket.parked = false;
      socket.offered = null;
    }
  }

  chunk(turn, chunk) {
    const frame = response(turn.id, { seq: turn.chunks.length, body: JSON.stringify(chunk) });
    turn.chunks.push(frame);
    this.tell(frame, (socket) => socket.offered !== turn.id); // who has not acked yet gets it as a replay
  }

  // resume is an offer, an ack, then all chunks so far and the live ones behind them
  offer(socket, turn, probeId) {
    socket.parked = false;
    socket.offered = turn.state === "streaming" ? turn.id : null;
    socket.send({ type: "cf_agent_stream_resuming", id: turn.id, probeId });
  }

  probe(socket, probeId) {
    const turn = this.open();
    const failed = [...this.turns.values()].at(-1);
    if (turn?.state === "streaming") this.offer(socket, turn, probeId);
    else if (turn) {
      socket.parked = true;
      socket.send({ type: "cf_agent_stream_pending", id: turn.id, probeId });
    } else if (failed?.terminal.error) this.offer(socket, failed, probeId);
    else socket.send({ type: "cf_agent_stream_resume_none", reason: "idle", probeId });
  }

  ack(socket, id) {
    const turn = this.turns.get(id);
    const streaming = this.open()?.state === "streaming";
    if (turn?.state === "streaming" || (turn?.state === "ended" && !streaming)) this.again(socket, turn);
    else if (!turn && !streaming) socket.send(terminal(id, { replay: true }));
  }

  again(socket, turn) {
    if (turn.state === "queued") return socket.send({ type: "cf_agent_stream_pending", id: turn.id });
    for (const frame of turn.chunks) socket.send({ ...frame, replay: true });
    if (turn.state === "ended") return socket.send({ ...turn.terminal, replay: true });
    socket.send(response(turn.id, { body: "", replay: true, replayComplete: true }));
    socket.offered = null;
  }

  open() {
    return [...this.turns.values()].find((turn) => turn.state !== "ended");
  }

  asked(turn) {
    return this.messages.findLastIndex((message) => turn.messageIds.includes(message.id));
  }

  prompt(turn) {
    const text = (message) => message.parts.map((part) => part.text ?? "").join("");
    return this.messages.slice(0, this.asked(turn) + 1).map((m) => ({ role: m.role, content: text(m) }));
  }

  tell(frame, wanted = () => true) {
    for (const socket of this.sockets) if (wanted(socket)) socket.send(frame);
  }
}

const response = (id, more) => ({ type: "cf_agent_use_chat_response", id, done: false, ...more });
const terminal = (id, more) => response(id, { body: "", done: true, ...more });

// ---- the model: OpenAI-compatible, server-sent events -------------------------------------------

async function* ask(messages, signal) {
  const body = JSON.stringify({ model: "any", stream: true, messages });
  const answer = await fetch(`${MODEL}/chat/completions`, { method: "POST", headers: TYPE, body, signal });
  if (!answer.ok) throw new Error(`the model answered with status ${answer.status}`);
  let rest = "";
  for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines.filter((each) => each.startsWith("data:"))) {
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Error(event.error.message);
      if (event.choices?.[0]?.delta?.content) yield event.choices[0].delta.content;
    }
  }
  throw new Error("the model's stream broke off");
}

// ---- HTTP and WebSocket --------------------------------------------------------------------------

const agents = new Map();
const made = (name, options = {}) => Object.assign(new Agent(), { name, options });
const agentOf = (name) => agents.get(name) ?? agents.set(name, made(name)).get(name);

const server = createServer((request, response) => {
  const [, name, messages] = AGENT.exec(request.url) ?? [];
  response.writeHead(messages ? 200 : 404, TYPE);
  response.end(messages ? JSON.stringify(agentOf(name).messages) : '"Not implemented"');
});

server.on("upgrade", (request, stream) => {
  const [, name] = AGENT.exec(request.url) ?? [];
  const key = request.headers["sec-websocket-key"];
  if (!name || !key) return stream.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  stream.write([...head, `Sec-WebSocket-Accept: ${accept}`, "", ""].join("\r\n"));
  const send = (frame) => stream.writable && stream.write(packed(1, Buffer.from(JSON.stringify(frame))));
  const socket = { send, cut: () => stream.destroy() };
  agentOf(name).connect(socket);
  let buffer = Buffer.alloc(0);
  let parts = [];
  stream.on("data", (bytes) => {
    buffer = Buffer.concat([buffer, bytes]);
    for (let frame; (frame = unpacked(buffer)); ) {
      buffer = buffer.subarray(frame.size);
      if (frame.opcode === 8) return stream.end(packed(8, frame.payload));
      if (frame.opcode === 9) stream.write(packed(10, frame.payload));
      if (frame.opcode > 2) continue;
      parts.push(frame.payload);
      if (!frame.last) continue;
      socket.agent.receive(socket, parsed(Buffer.concat(parts)));
      parts = [];
    }
    if (buffer.length + parts.reduce((sum, part) => sum + part.length, 0) > 8e6) stream.destroy();
  });
  for (const ending of ["end", "error"]) stream.on(ending, () => stream.destroy());
  stream.on("close", () => socket.agent.sockets.delete(socket));
});

function parsed(bytes) {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null; // what is no JSON is nobody's frame
  }
}

function packed(opcode, payload) {
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(payload.length));
  const short = payload.length < 126 ? payload.length : payload.length < 65536 ? 126 : 127;
  const long = size.subarray(short < 126 ? 8 : short === 126 ? 6 : 0);
  return Buffer.concat([Buffer.from([0x80 | opcode, short]), long, payload]);
}

function unpacked(buffer) {
  if (buffer.length < 2) return null;
  const short = buffer[1] & 0x7f;
  const start = (short < 126 ? 2 : short === 126 ? 4 : 10) + 4; // a client masks what it sends
  if (buffer.length < start) return null;
  const long = () => (short === 126 ? buffer.readUInt16BE(2) : Number(buffer.readBigUInt64BE(2)));
  const size = short < 126 ? short : long();
  if (buffer.length < start + size) return null;
  const mask = buffer.subarray(start - 4, start);
  const payload = Buffer.from(buffer.subarray(start, start + size)).map((byte, at) => byte ^ mask[at % 4]);
  return { opcode: buffer[0] & 0x0f, last: (buffer[0] & 0x80) !== 0, payload, size: start + size };
}

server.listen(Number(PORT), "127.0.0.1");
