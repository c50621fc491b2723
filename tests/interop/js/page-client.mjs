// A page with the official React hooks, in a real Chromium. The page lives at the address of the proxy, so
// that the hook finds the transcript where it looks for it.
import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";

let browser;

const launch = () =>
  (browser ??= chromium.launch({
    timeout: 0, // how long anything may take is for those to say who asked
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: process.getuid() === 0 ? ["--no-sandbox"] : [],
  }));

export async function closeBrowser() {
  await (await browser)?.close();
}

export class PageClient {
  constructor(where, tell) {
    this.where = where;
    this.tell = tell;
  }

  async open() {
    const script = await readFile(new URL("./page.js", import.meta.url), "utf8");
    const html = `<!doctype html><div id="root"></div><script>where = ${JSON.stringify(this.where)}</script>` +
      `<script type="module" src="/page.js"></script>`;
    // A page that was not fetched counts as public, and needs leave to talk to this machine.
    this.context = await (await launch()).newContext({ permissions: ["local-network-access"] });
    this.context.setDefaultTimeout(0);
    await this.context.exposeFunction("tell", this.tell);
    await this.context.route("**/page.html", (route) => route.fulfill({ contentType: "text/html", body: html }));
    await this.context.route("**/page.js", (route) =>
      route.fulfill({ contentType: "text/javascript", body: script }));
    this.page = await this.context.newPage();
    this.page.on("pageerror", (error) => console.error(error));
    await this.back();
  }

  async back() {
    await this.page.goto(`http://${this.where.host}/page.html`);
    await this.#connected();
  }

  async refresh() {
    await this.page.reload();
    await this.#connected();
  }

  #connected() { return this.page.waitForFunction("globalThis.connected"); }

  send(text) { return this.page.evaluate((text) => void chat.sendMessage({ text }), text); }
  stop() { return this.page.evaluate(() => void chat.stop()); }
  leave() { return this.page.goto("about:blank"); }
  offline() { return this.context.setOffline(true); }
  online() { return this.context.setOffline(false); }
  close() { return this.context.close(); }
}
