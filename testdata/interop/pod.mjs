// Starts the built pod for one suite and speaks to it on raw sockets where a suite wants that.
import {spawn} from 'node:child_process';
import {mkdtemp, mkdir, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as pause} from 'node:timers/promises';
import WebSocket from 'ws';

const patience = 60_000; // milliseconds

export const config = `
[acp]
listen = "127.0.0.1:0"
[mcp]
listen = "127.0.0.1:0"
[[mcp.acp_servers]]
name = "katashiro"
tools = ["*"]
[debug]
listen = "127.0.0.1:0"
`;

// Pod is a running `acpod serve`: {public, facade, debug} as host:port, home, log(), stop(). mcp is what its mcp.json says.
export async function startPod(toml = config, mcp = undefined) {
  const home = await mkdtemp(join(tmpdir(), 'acpod-interop-'));
  await mkdir(join(home, 'work'));
  if (mcp) {
    await mkdir(join(home, '.openab', 'agent'), {recursive: true});
    await writeFile(join(home, '.openab', 'agent', 'mcp.json'), JSON.stringify(mcp));
  }
  await writeFile(join(home, 'acpod.toml'), toml);
  const ready = join(home, 'ready.json');
  let log = '';
  const child = spawn(process.env.ACPOD, ['serve', '--config', join(home, 'acpod.toml'), '--ready-file', ready], {
    cwd: join(home, 'work'), env: {HOME: home, PATH: process.env.PATH, USER: 'tester'}, stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.on('data', (data) => { log += data; });
  child.stderr.on('data', (data) => { log += data; });
  process.once('exit', () => child.kill('SIGKILL')); // a suite that failed leaves no pod behind
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve({code, signal})));
  let addresses;
  for (const end = Date.now() + patience; !addresses;) {
    if (Date.now() > end || child.exitCode !== null) throw new Error(`the pod did not start:\n${log}`);
    await pause(20);
    addresses = await readFile(ready, 'utf8').then(JSON.parse, () => undefined);
  }
  return {
    ...addresses,
    home,
    log: () => log,
    async stop() {
      child.kill('SIGTERM');
      const {code, signal} = await ended;
      await rm(home, {recursive: true, force: true});
      if (code !== 0) throw new Error(`the pod ended with ${code ?? signal}:\n${log}`);
    },
  };
}

// until polls for a condition.
export async function until(what, holds) {
  for (const end = Date.now() + patience; ;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what} did not come`);
    await pause(20);
  }
}

// A raw client that keeps every frame of the pod, answers mcp/* in one of the wire's generations, and asks.
export class RawClient {
  frames = []; asked = new Map(); #next = 1; #open = new Map(); #connections = new Map();

  static async connect(pod, generation) {
    const client = new RawClient();
    client.generation = generation;
    client.socket = new WebSocket(`ws://${pod.public}/acp`, ['acp.v1']);
    client.socket.on('message', (data) => client.#receive(String(data)));
    await new Promise((resolve, reject) => { client.socket.once('open', resolve); client.socket.once('error', reject); });
    return client;
  }

  get declaration() {
    switch (this.generation) {
      case '0': return {type: 'http', name: 'katashiro', url: 'acp:raw-server', headers: []};
      case 'A': return {type: 'acp', name: 'katashiro', id: 'raw-server'};
      default: return {type: 'acp', name: 'katashiro', serverId: 'raw-server'};
    }
  }

  request(method, params) {
    const id = this.#next++;
    this.asked.set(id, method);
    return new Promise((resolve, reject) => {
      this.#open.set(id, {resolve, reject});
      this.#send({jsonrpc: '2.0', id, method, params});
    });
  }

  notify(method, params) { this.#send({jsonrpc: '2.0', method, params}); }

  close() { this.socket.close(); }

  #send(frame) { this.socket.send(JSON.stringify(frame)); }

  #receive(text) {
    const frame = JSON.parse(text);
    this.frames.push(frame);
    if (frame.method === undefined) {
      const waiting = this.#open.get(frame.id);
      this.#open.delete(frame.id);
      if (frame.error) waiting?.reject(Object.assign(new Error(frame.error.message), frame.error));
      else waiting?.resolve(frame.result);
    } else if (frame.id !== undefined) {
      const {result, error} = this.#answer(frame.method, frame.params ?? {});
      if (result !== undefined || error !== undefined) this.#send({jsonrpc: '2.0', id: frame.id, ...(error ? {error} : {result})});
    }
  }

  #answer(method, params) {
    const unknown = {error: {code: -32601, message: 'method not found'}};
    switch (method) {
      case 'mcp/connect': return this.generation === 'C' ? unknown : {result: {connectionId: `c${this.#connections.size}`}};
      case '_mcp/connect': return {result: {connection_id: `c${this.#connections.size}`}};
      case 'mcp/disconnect': return {result: {}};
      case 'session/request_permission': return {result: {outcome: {outcome: 'selected', optionId: params.options[0].optionId}}};
      case 'mcp/message': case '_mcp/message': {
        const inner = this.#inner(params.method, params.params ?? {});
        if (this.generation !== 'C' || !inner) return inner ?? {};
        return {result: inner};
      }
    }
    return unknown;
  }

  #inner(method, params) {
    const click = {name: 'katashiro.click', description: 'clicks', inputSchema: {type: 'object'}};
    switch (method) {
      case 'initialize': return {result: {protocolVersion: params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: 'raw', version: '1'}}};
      case 'tools/list': return {result: {tools: [click]}};
      case 'tools/call':
        if (params.arguments?.hold) return null;
        return {result: {content: [{type: 'text', text: `called ${params.name}`}]}};
    }
    return {error: {code: -32601, message: 'method not found'}};
  }
}
