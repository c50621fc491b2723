// Speaks for the official client: one JSON command a line on stdin, one JSON event a line on stdout.
// {n, client, do, ...} is answered by {n, ok} or {n, error}; what a client has to tell comes as
// {client, shown} when it shows something else and {client, opened: 1} when its socket opens.
import { createInterface } from "node:readline";
import { NodeClient } from "./node-client.mjs";
import { PageClient, closeBrowser } from "./page-client.mjs";

const kinds = { node: NodeClient, page: PageClient };
const clients = new Map();

const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);

async function perform({ client, do: what, kind, where, text }) {
  if (what === "open") {
    const opened = new kinds[kind](where, (event) => say({ client, ...event }));
    clients.set(client, opened);
    await opened.open();
    return;
  }
  await clients.get(client)[what](text);
  if (what === "close") clients.delete(client);
}

const commands = createInterface({ input: process.stdin });
commands.on("line", (line) => {
  const command = JSON.parse(line);
  perform(command).then(
    () => say({ n: command.n, ok: true }),
    (error) => say({ n: command.n, error: String(error?.stack ?? error) }),
  );
});
commands.on("close", async () => {
  await closeBrowser();
  process.exit(0);
});
