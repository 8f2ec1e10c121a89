// The MCP server that this page serves back through its own socket (MCP-over-ACP): connect, message, disconnect.
import {failure} from './socket.js';

const protocolVersions = ['2025-06-18', '2025-03-26', '2024-11-05'];

export class Server {
  #id; #name; #tools; #connections = new Map();

  // tools: [{name, description, inputSchema, annotations, run(arguments) -> result}], names without the server's
  constructor(name, tools) {
    this.#id = crypto.randomUUID();
    this.#name = name;
    this.#tools = tools.map((tool) => ({...tool, name: `${name}.${tool.name}`}));
  }

  // What session/new and session/resume say of this server.
  get declaration() { return {type: 'acp', name: this.#name, id: this.#id}; }

  get connected() { return this.#connections.size; }

  reset() { this.#connections.clear(); }

  async handle(method, params) {
    switch (method) {
      case 'mcp/connect':
        if (params.acpId !== this.#id) throw failure(-32602, 'no server of that id is declared here');
        return this.#connect();
      case 'mcp/disconnect':
        this.#connections.delete(params.connectionId);
        return {};
      case 'mcp/message':
        if (!this.#connections.has(params.connectionId)) throw failure(-32602, 'no such connection');
        return this.#answer(params.method, params.params ?? {});
    }
    throw failure(-32601, `unknown method ${method}`);
  }

  #connect() {
    const connectionId = crypto.randomUUID();
    this.#connections.set(connectionId, true);
    return {connectionId};
  }

  async #answer(method, params) {
    switch (method) {
      case 'initialize': {
        const version = protocolVersions.includes(params.protocolVersion) ? params.protocolVersion : protocolVersions[0];
        return {protocolVersion: version, capabilities: {tools: {}}, serverInfo: {name: 'acpod playground', version: '1'}};
      }
      case 'notifications/initialized':
        return {};
      case 'tools/list':
        return {tools: this.#tools.map(({run, ...shown}) => shown)};
      case 'tools/call': {
        const tool = this.#tools.find(({name}) => name === params.name);
        if (!tool) throw failure(-32602, 'no such tool');
        try {
          return await tool.run(params.arguments ?? {});
        } catch (error) {
          return {content: [{type: 'text', text: error.message}], isError: true};
        }
      }
    }
    throw failure(-32601, `unknown method ${method}`);
  }
}
