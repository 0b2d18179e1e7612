// Everything that goes to the server and comes back.
//
// An answer is kept until the server has acknowledged it: it is sent again for as long as that takes, also after
// a reload of the page. The server knows by the turn whether it has it already.

const FIRST_WAIT = 400;
const LONGEST_WAIT = 5000;
const PATIENCE = 15000;
const LATER = new Set([429, 500, 502, 503, 504]);

export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Server {
  // trouble(text) is called with what is wrong while something is, and with "" when that is over.
  constructor(trouble) {
    this.trouble = trouble;
    this.annotator = null;
    this.formToken = "";
    this.turn = null;
  }

  async enter(annotator) {
    this.annotator = annotator;
    const me = await this.get("/api/me");
    this.annotator = me.local ? me.annotator : null;
    this.formToken = me.form_token;
    this.pendingName = `slatewise-pending-${me.annotator}`;
    return me;
  }

  get(path) {
    return this.#insist(path, { method: "GET" });
  }

  post(path, body) {
    return this.#insist(path, { method: "POST", body: JSON.stringify(body) });
  }

  // An act of the person's: recorded once, whatever happens on the way.
  async act(name, body) {
    const sent = { ...body, turn: this.turn };
    sessionStorage.setItem(this.pendingName, JSON.stringify({ name, sent }));
    return this.#acknowledged(name, sent);
  }

  async next(item = null) {
    const reply = await this.post("/api/next", { item });
    this.turn = reply.turn;
    return reply;
  }

  async review() {
    const reply = await this.get("/api/review?most=200");
    this.turn = reply.turn;
    return reply;
  }

  // What was not acknowledged when the page was left is sent before anything else; returns why it was refused for good
  // because something else was done meanwhile, or "".
  async sendPending() {
    const kept = sessionStorage.getItem(this.pendingName);
    if (kept === null) return "";
    const { name, sent } = JSON.parse(kept);
    try {
      await this.#acknowledged(name, sent);
      return "";
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return error.message;
    }
  }

  async #acknowledged(name, sent) {
    try {
      const reply = await this.post(`/api/${name}`, sent);
      this.turn = reply.turn;
      return reply;
    } finally {
      sessionStorage.removeItem(this.pendingName); // acknowledged, or refused for good
    }
  }

  async #insist(path, options) {
    let wait = FIRST_WAIT;
    let renewed = false;
    for (;;) {
      let problem;
      try {
        const reply = await this.#ask(path, options);
        if (reply.ok) {
          const body = await reply.json();
          this.trouble("");
          return body;
        }
        const text = await textOf(reply);
        if (reply.status === 401) {
          location.assign("/enter");
          return new Promise(() => {});
        }
        if (reply.status === 403 && text.startsWith("X-Form-Token") && !renewed) {
          renewed = true; // another project is served here now, or the token is another
          this.formToken = (await (await this.#ask("/api/me", { method: "GET" })).json()).form_token;
          continue;
        }
        if (!LATER.has(reply.status)) {
          this.trouble("");
          throw new Refusal(reply.status, text);
        }
        problem = `The server cannot take it at the moment: ${text}`;
      } catch (error) {
        if (error instanceof Refusal) throw error;
        problem = "The server does not answer.";
      }
      const kept = options.method === "POST" ? " Your last answer is kept here, and sent again by itself." : " Trying again.";
      this.trouble(problem + kept);
      await pause(wait);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }

  #ask(path, options) {
    const address = new URL(path, location.origin);
    if (this.annotator !== null) address.searchParams.set("annotator", this.annotator);
    const headers = { accept: "application/json" };
    if (options.method === "POST") {
      headers["content-type"] = "application/json";
      headers["x-form-token"] = this.formToken;
    }
    return fetch(address, { ...options, headers, signal: AbortSignal.timeout(PATIENCE), redirect: "error" });
  }
}

async function textOf(reply) {
  const text = await reply.text();
  try {
    return JSON.parse(text).detail;
  } catch {
    return text.trim();
  }
}

// Waits, but not when the browser is back on the network.
function pause(milliseconds) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener("online", end);
  });
}
