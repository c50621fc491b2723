// The tested agent: Cloudflare's own Think, unchanged, behind the agent contract of docs/target.md.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Think } from "@cloudflare/think";
import { callable, routeAgentRequest } from "agents";
import { tool } from "ai";
import { z } from "zod";

interface Env {
  THINK_MODEL_URL: string;
  THINK_EFFECTS_URL: string;
}

interface Options {
  prepareDelayMs?: number;
  maxAttempts?: number;
  terminalMessage?: string;
}

const OPTIONS = "conformance:options";

const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export class ConformanceAgent extends Think<Env> {
  // `heartbeat_s` of the target file: how soon a crashed agent wakes that nobody connects to.
  static options = { keepAliveIntervalMs: 2000 };

  readonly #prepareDelayMs: number;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    // Read here and not in a start hook: recovery is decided before that runs.
    const { prepareDelayMs = 0, ...recovery } = ctx.storage.kv.get<Options>(OPTIONS) ?? {};
    this.#prepareDelayMs = prepareDelayMs;
    this.chatRecovery = recovery;
  }

  getModel() {
    const provider = createOpenAICompatible({ name: "scripted", baseURL: this.env.THINK_MODEL_URL });
    return provider("scripted");
  }

  async beforeTurn() {
    await delay(this.#prepareDelayMs);
    // A call the model library repeats by itself would look like a second run of the turn.
    return { maxRetries: 0 };
  }

  getTools() {
    const key = z.string();
    return {
      record_effect: tool({
        description: "Record an effect.",
        inputSchema: z.object({ key }),
        execute: (input, { toolCallId }) => this.#record("record_effect", input.key, toolCallId),
      }),
      slow_effect: tool({
        description: "Record an effect, then wait.",
        inputSchema: z.object({ key, ms: z.number() }),
        execute: async (input, { toolCallId }) => {
          const done = await this.#record("slow_effect", input.key, toolCallId);
          await delay(input.ms);
          return done;
        },
      }),
      fail_effect: tool({
        description: "Record an effect, then fail.",
        inputSchema: z.object({ key }),
        execute: async (input, { toolCallId }) => {
          await this.#record("fail_effect", input.key, toolCallId);
          throw new Error(`\`${input.key}\` was recorded, and then the tool failed`);
        },
      }),
    };
  }

  @callable()
  configure(options: Options) {
    this.ctx.storage.kv.put(OPTIONS, options);
  }

  @callable()
  evict() {
    this.ctx.abort("evicted");
  }

  async #record(name: string, key: string, toolCallId: string) {
    const answer = await fetch(this.env.THINK_EFFECTS_URL, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key, tool: name, toolCallId }),
    });
    if (!answer.ok) throw new Error(`the effect was refused with status ${answer.status}`);
    return { recorded: key };
  }
}

export default {
  async fetch(request: Request, env: Env) {
    return (await routeAgentRequest(request, env)) ?? new Response("Not found", { status: 404 });
  },
};
