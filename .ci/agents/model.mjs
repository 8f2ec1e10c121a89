// A model endpoint on loopback that has no model: what it answers is said by the prompt (script.mjs), in the API that is asked (dialects.mjs).
import {createServer} from 'node:http';
import {dialects} from './dialects.mjs';
import {next} from './script.mjs';

export class Model {
  #server; #gates = new Map(); #open = new Set();
  turns = []; // what was asked with tools: {api, ask, results, tools, said}

  static async start() {
    const model = new Model();
    model.#server = createServer((request, response) => model.#serve(request, response).catch(() => response.destroy()));
    model.#server.on('connection', (socket) => { model.#open.add(socket); socket.on('close', () => model.#open.delete(socket)); });
    await new Promise((resolve) => { model.#server.listen(0, '127.0.0.1', resolve); });
    return model;
  }

  get url() { return `http://127.0.0.1:${this.#server.address().port}`; }

  // release lets the answers to `play: hold NAME` go on.
  release(name) { this.#gate(name).open(); }

  async stop() {
    for (const socket of this.#open) socket.destroy();
    await new Promise((resolve) => { this.#server.close(resolve); });
  }

  #gate(name) {
    if (!this.#gates.has(name)) this.#gates.set(name, Promise.withResolvers());
    const {promise, resolve} = this.#gates.get(name);
    return {passed: promise, open: resolve};
  }

  async #serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const path = new URL(request.url, this.url).pathname;
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : {};
    const dialect = dialects.find((one) => one.serves(request.method, path));
    if (!dialect) {
      response.writeHead(404, {'content-type': 'application/json'});
      response.end('{"error":{"message":"not here","type":"not_found_error"}}');
      return;
    }
    if (!dialect.read) return dialect.answer(response, body);
    const turn = dialect.read(body);
    const writer = dialect.write(response, body, path);
    const closed = new Promise((resolve) => { response.on('close', resolve); });
    if (turn.tools.length === 0 || turn.ask === undefined) { // a title, a summary, a warm-up: asked beside the turn
      writer.text(writer.beside ?? 'Fine.');
      writer.end();
      return;
    }
    const record = {api: dialect.name, ask: turn.ask, results: turn.results, tools: turn.tools.map(({name}) => name), history: JSON.stringify(body)};
    this.turns.push(record);
    const step = next(turn);
    record.does = step;
    if (step.call) {
      writer.call(step.call.tool, step.call.arguments);
      writer.end();
      return;
    }
    for (const part of step.say) {
      if (typeof part === 'string') writer.text(part);
      else await Promise.race([this.#gate(part.gate).passed, closed]);
    }
    writer.end();
  }
}
