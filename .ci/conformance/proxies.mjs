// What stands between the suite and the facade on loopback: the suite cannot send a bearer, and it looks for tools of its own
// names. Host and Origin pass as they are.
import {createServer, request} from 'node:http';

// addHeader relays everything as it comes, and adds the bearer of a session where there is one.
export function addHeader(facade, token) {
  return listen((incoming, outgoing) => relay(facade, token, incoming, incoming, outgoing));
}

// shim lists the tools that a search finds as tools of its own, and makes each call of one an execution of that capability. The
// rest of a message stays as it is, and so does every answer.
export function shim(facade, token) {
  const call = async (name, args) => {
    const response = await fetch(`http://${facade}/mcp`, {
      method: 'POST', headers: {'Content-Type': 'application/json', Accept: 'application/json', Authorization: `Bearer ${token}`},
      body: JSON.stringify({jsonrpc: '2.0', id: 1, method: 'tools/call', params: {name, arguments: args}}),
    });
    return (await response.json()).result;
  };
  const found = async () => {
    const tools = [];
    for (let cursor; ;) {
      const {content} = await call('search_capabilities', {limit: 100, ...(cursor ? {cursor} : {})});
      const page = JSON.parse(content[0].text);
      tools.push(...page.capabilities.map(({name, description, input_schema: inputSchema}) => ({name, description, inputSchema})));
      if (!(cursor = page.next_cursor)) return tools;
    }
  };
  return listen(async (incoming, outgoing) => {
    const body = await text(incoming);
    let message;
    try { message = JSON.parse(body); } catch { /* it is the facade's to say so */ }
    const headers = incoming.rawHeaders.slice();
    if (message?.method === 'tools/call' && /^(test|json)_/.test(message.params?.name)) {
      const {name, arguments: args = {}} = message.params;
      message.params = {...message.params, name: 'execute_capability', arguments: {name, arguments: args}};
      for (let i = 0; i < headers.length; i += 2) if (headers[i].toLowerCase() === 'mcp-name' && headers[i + 1] === name) headers[i + 1] = 'execute_capability';
      return relay(facade, token, {method: incoming.method, url: incoming.url, rawHeaders: headers, body: JSON.stringify(message)}, incoming, outgoing);
    }
    const asked = {method: incoming.method, url: incoming.url, rawHeaders: headers, body};
    if (message?.method !== 'tools/list') return relay(facade, token, asked, incoming, outgoing);
    return relay(facade, token, asked, incoming, outgoing, async (answer) => {
      const list = JSON.parse(answer);
      if (list.result) list.result.tools = await found();
      return JSON.stringify(list);
    });
  });
}

async function listen(handle) {
  const server = createServer((incoming, outgoing) => Promise.resolve(handle(incoming, outgoing)).catch((error) => outgoing.destroy(error)));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/mcp`,
    stop() { server.closeAllConnections(); return new Promise((resolve) => server.close(resolve)); },
  };
}

async function text(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

// relay sends one request on; change may rewrite the whole answer.
function relay(facade, token, {method, url, rawHeaders, body}, incoming, outgoing, change) {
  const [host, port] = facade.split(':');
  const headers = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (body !== undefined && /^(content-length|transfer-encoding)$/i.test(rawHeaders[i])) continue;
    headers.push(rawHeaders[i], rawHeaders[i + 1]);
  }
  if (body !== undefined) headers.push('Content-Length', String(Buffer.byteLength(body)));
  if (token) headers.push('Authorization', `Bearer ${token}`);
  const onward = request({host, port, method, path: url, headers, setHost: false}, async (response) => {
    if (!change) {
      outgoing.writeHead(response.statusCode, response.rawHeaders);
      outgoing.flushHeaders();
      response.pipe(outgoing);
      return;
    }
    const changed = await change(await text(response));
    outgoing.writeHead(response.statusCode, {'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(changed)});
    outgoing.end(changed);
  });
  onward.on('error', () => outgoing.destroy());
  outgoing.on('close', () => onward.destroy()); // the closing of a request means something
  if (body === undefined) incoming.pipe(onward);
  else onward.end(body);
}
