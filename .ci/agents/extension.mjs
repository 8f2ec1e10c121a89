// A simulated extension: it speaks ACP to the pod on one socket and serves an MCP server, katashiro, back through it.
import {setTimeout as pause} from 'node:timers/promises';
import {patience} from './pod.mjs';

const click = {
  name: 'katashiro.click', description: 'Clicks an element of the page',
  inputSchema: {type: 'object', properties: {selector: {type: 'string'}}, required: ['selector']},
};
const declaration = {type: 'acp', name: 'katashiro', id: 'agents-test'};

export class Extension {
  frames = []; // all that the pod wrote, in order
  calls = []; // arguments of katashiro.click
  asked = []; // permission requests
  choose = () => undefined; // of a permission request: the option's id; undefined leaves it open
  during = async () => {}; // runs while the tool does
  #next = 1; #open = new Map(); #woken = [];

  // connect opens a socket; secret makes sessions findable by the next one.
  static async connect(address, secret) {
    const extension = new Extension();
    const socket = new WebSocket(`ws://${address}/acp`, ['acp.v1']);
    extension.socket = socket;
    socket.addEventListener('message', ({data}) => extension.#receive(JSON.parse(data)));
    await new Promise((resolve, reject) => { socket.addEventListener('open', resolve); socket.addEventListener('error', () => reject(new Error('no socket'))); });
    extension.hello = await extension.request('initialize', {
      protocolVersion: 1, clientInfo: {name: 'agents-test', version: '1'}, clientCapabilities: {}, _meta: {'acpod.dev/client': secret},
    });
    return extension;
  }

  open(cwd = '/') { return this.request('session/new', {cwd, mcpServers: [declaration]}); }

  again(method, sessionId) { return this.request(method, {sessionId, cwd: '/', mcpServers: [declaration]}); }

  prompt(sessionId, text) { return this.request('session/prompt', {sessionId, prompt: [{type: 'text', text}]}); }

  request(method, params) {
    const id = this.#next++;
    const answer = new Promise((resolve, reject) => { this.#open.set(id, {resolve, reject}); });
    this.#send({jsonrpc: '2.0', id, method, params});
    return Promise.race([answer, pause(patience, undefined, {ref: false}).then(() => { throw new Error(`${method} was not answered`); })]);
  }

  notify(method, params) { this.#send({jsonrpc: '2.0', method, params}); }

  close() { this.socket.close(); }

  // said is the text of the agent's message chunks from a frame on, in a session.
  said(sessionId, from = 0) {
    return this.frames.slice(from)
      .filter(({method, params}) => method === 'session/update' && params.sessionId === sessionId && params.update.sessionUpdate === 'agent_message_chunk')
      .map(({params}) => params.update.content.text ?? '').join('');
  }

  // seen waits until a frame holds.
  async seen(what, holds, from = 0) {
    for (const end = Date.now() + patience; ;) {
      const found = this.frames.slice(from).find(holds);
      if (found) return found;
      if (Date.now() > end) throw new Error(`${what} did not come`);
      await Promise.race([new Promise((resolve) => { this.#woken.push(resolve); }), pause(1000)]);
    }
  }

  #send(frame) { this.socket.send(JSON.stringify(frame)); }

  #receive(frame) {
    this.frames.push(frame);
    for (const wake of this.#woken.splice(0)) wake();
    if (frame.method === undefined) {
      const waiting = this.#open.get(frame.id);
      this.#open.delete(frame.id);
      if (frame.error) waiting?.reject(Object.assign(new Error(`${frame.error.code} ${frame.error.message} ${JSON.stringify(frame.error.data ?? null)}`), frame.error));
      else waiting?.resolve(frame.result);
    } else if (frame.id !== undefined) {
      this.#serve(frame.method, frame.params ?? {}).then((answer) => {
        if (answer) this.#send({jsonrpc: '2.0', id: frame.id, ...answer});
      });
    }
  }

  async #serve(method, params) {
    switch (method) {
      case 'mcp/connect': return {result: {connectionId: 'c1'}};
      case 'mcp/disconnect': return {result: {}};
      case 'mcp/message': return this.#inner(params.method, params.params ?? {});
      case 'session/request_permission': {
        this.asked.push(params);
        const optionId = this.choose(params);
        return optionId && {result: {outcome: {outcome: 'selected', optionId}}};
      }
      default: return {error: {code: -32601, message: 'method not found'}};
    }
  }

  async #inner(method, params) {
    switch (method) {
      case 'initialize': return {result: {protocolVersion: params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: 'katashiro', version: '1'}}};
      case 'tools/list': return {result: {tools: [click]}};
      case 'tools/call':
        this.calls.push(params.arguments);
        await this.during();
        return {result: {content: [{type: 'text', text: `clicked ${params.arguments.selector}`}]}};
      default: return {error: {code: -32601, message: 'method not found'}};
    }
  }
}

// allow and reject choose by kind, never by position.
const ofKind = (...kinds) => ({options}) => kinds.map((kind) => options.find((option) => option.kind === kind)).find(Boolean)?.optionId;
export const allow = ofKind('allow_once', 'allow_always');
export const reject = ofKind('reject_once', 'reject_always');
