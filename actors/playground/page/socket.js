// One WebSocket to the pod with JSON-RPC on it: requests in both directions, each with ids of its own.
// It knows neither sessions nor tools; app.js does.

export class Socket {
  #socket; #next = 1; #open = new Map(); #handlers; #log;

  // handlers: {opened(), closed(code, reason), request(method, params, id) -> result, notified(method, params)}
  constructor(handlers, log) {
    this.#handlers = handlers;
    this.#log = log;
  }

  connect(key) {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const protocols = key ? ['acp.v1', `openab.bearer.${key}`] : ['acp.v1'];
    const socket = new WebSocket(`${scheme}://${location.host}/acp`, protocols);
    this.#socket = socket;
    socket.onopen = () => this.#handlers.opened();
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => {
      if (this.#socket !== socket) return; // a later one has taken its place
      for (const {reject} of this.#open.values()) reject(new Error('the connection was lost'));
      this.#open.clear();
      this.#handlers.closed(event.code, event.reason);
    };
  }

  get isOpen() { return this.#socket?.readyState === WebSocket.OPEN; }

  request(method, params) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#open.set(id, {resolve, reject});
      this.#send({jsonrpc: '2.0', id, method, params});
    });
  }

  notify(method, params) { this.#send({jsonrpc: '2.0', method, params}); }

  #send(frame) {
    if (!this.isOpen) return;
    const text = JSON.stringify(frame);
    this.#log('out', frame, text);
    this.#socket.send(text);
  }

  async #receive(text) {
    let frame;
    try { frame = JSON.parse(text); } catch { return; }
    this.#log('in', frame, text);
    if (frame.method === undefined) {
      const waiting = this.#open.get(frame.id);
      this.#open.delete(frame.id);
      if (!waiting) return;
      if (frame.error) waiting.reject(Object.assign(new Error(frame.error.message), frame.error));
      else waiting.resolve(frame.result);
      return;
    }
    if (frame.id === undefined) {
      this.#handlers.notified(frame.method, frame.params ?? {});
      return;
    }
    try {
      const result = await this.#handlers.request(frame.method, frame.params ?? {}, frame.id);
      this.#send({jsonrpc: '2.0', id: frame.id, result});
    } catch (error) {
      const code = Number.isInteger(error.code) ? error.code : -32603;
      this.#send({jsonrpc: '2.0', id: frame.id, error: {code, message: error.message}});
    }
  }
}

// A JSON-RPC error with its code.
export function failure(code, message) { return Object.assign(new Error(message), {code}); }
