// The APIs of four makers, as much of them as agents use: each reads a request as {ask, results, tools}, and writes an answer in pieces.
import {asked} from './script.mjs';

const json = (response, value) => {
  response.writeHead(200, {'content-type': 'application/json'});
  response.end(JSON.stringify(value));
};

const events = (response) => {
  response.writeHead(200, {'content-type': 'text/event-stream', 'cache-control': 'no-cache'});
  return (data, event) => response.write(`${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`);
};

const textOf = (content) => {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map((part) => part.text ?? '').join('\n');
  return JSON.stringify(content ?? '');
};

// turnOf goes through a conversation, oldest first: {said} of the user and {result} of a tool.
const turnOf = (conversation, tools) => {
  const turn = {ask: undefined, results: [], tools};
  for (const {said, result} of conversation) {
    const ask = said === undefined ? undefined : asked(said);
    if (ask) Object.assign(turn, {ask, results: []});
    if (result !== undefined) turn.results.push(result);
  }
  return turn;
};

let ids = 0;
const fresh = (prefix) => `${prefix}_${++ids}`;

// OpenAI, chat completions.
const chat = {
  name: 'chat',
  serves: (method, path) => method === 'POST' && path.endsWith('/chat/completions'),
  read: ({messages = [], tools = []}) => turnOf(
    messages.map(({role, content}) => (role === 'tool' ? {result: textOf(content)} : role === 'user' ? {said: textOf(content)} : {})),
    tools.map(({function: {name}}) => ({name})),
  ),
  write(response, {model, stream}) {
    const base = {id: fresh('chat'), created: 1, model};
    const usage = {prompt_tokens: 10, completion_tokens: 5, total_tokens: 15};
    if (!stream) {
      let content = '';
      return {
        text: (text) => { content += text; },
        end: () => json(response, {...base, object: 'chat.completion', usage, choices: [{index: 0, finish_reason: 'stop', message: {role: 'assistant', content}}]}),
      };
    }
    const send = events(response);
    const delta = (part, reason = null) => send({...base, object: 'chat.completion.chunk', choices: [{index: 0, delta: part, finish_reason: reason}]});
    let reason = 'stop';
    return {
      text: (content) => delta({role: 'assistant', content}),
      call({name}, args) {
        reason = 'tool_calls';
        delta({role: 'assistant', tool_calls: [{index: 0, id: fresh('call'), type: 'function', function: {name, arguments: JSON.stringify(args)}}]});
      },
      end() {
        delta({}, reason);
        send({...base, object: 'chat.completion.chunk', choices: [], usage});
        response.end('data: [DONE]\n\n');
      },
    };
  },
};

// OpenAI, responses. Tools of a server may stand in a namespace.
const responses = {
  name: 'responses',
  serves: (method, path) => method === 'POST' && path.endsWith('/responses'),
  read: ({input = [], tools = []}) => turnOf(
    input.map((item) => (item.type === 'function_call_output' ? {result: textOf(item.output)} : item.role === 'user' ? {said: textOf(item.content)} : {})),
    tools.flatMap((tool) => (tool.type === 'namespace' ? tool.tools.map(({name}) => ({name, namespace: tool.name})) : [{name: tool.name ?? tool.type}])),
  ),
  write(response, {model}) {
    const send = events(response);
    const event = (type, data) => send({type, ...data}, type);
    const base = {id: fresh('resp'), object: 'response', model};
    const output = [];
    let message;
    event('response.created', {response: {...base, status: 'in_progress', output: []}});
    const finish = () => {
      if (!message) return;
      event('response.output_item.done', {output_index: output.length, item: message});
      output.push(message);
      message = undefined;
    };
    return {
      text(text) {
        if (!message) {
          message = {type: 'message', role: 'assistant', id: fresh('msg'), content: [{type: 'output_text', text: ''}]};
          event('response.output_item.added', {output_index: output.length, item: {...message, content: []}});
        }
        message.content[0].text += text;
        event('response.output_text.delta', {item_id: message.id, output_index: output.length, content_index: 0, delta: text});
      },
      call({name, namespace}, args) {
        finish();
        const item = {type: 'function_call', id: fresh('fc'), call_id: fresh('call'), name, arguments: JSON.stringify(args), ...(namespace && {namespace})};
        event('response.output_item.added', {output_index: output.length, item: {...item, arguments: ''}});
        event('response.output_item.done', {output_index: output.length, item});
        output.push(item);
      },
      end() {
        finish();
        const usage = {input_tokens: 10, input_tokens_details: {cached_tokens: 0}, output_tokens: 5, output_tokens_details: {reasoning_tokens: 0}, total_tokens: 15};
        event('response.completed', {response: {...base, status: 'completed', output, usage}});
        response.end();
      },
    };
  },
};

// Anthropic, messages.
const messages = {
  name: 'messages',
  serves: (method, path) => method === 'POST' && path.endsWith('/v1/messages'),
  read: ({messages: all = [], tools = []}) => turnOf(
    all.flatMap(({role, content}) => {
      if (role !== 'user') return [];
      if (typeof content === 'string') return [{said: content}];
      return content.map((block) => (block.type === 'tool_result' ? {result: textOf(block.content)} : {said: block.text ?? ''}));
    }),
    tools.map(({name}) => ({name})),
  ),
  write(response, {model, stream}) {
    const base = {id: fresh('msg'), type: 'message', role: 'assistant', model, stop_sequence: null};
    const usage = {input_tokens: 10, output_tokens: 5};
    if (!stream) {
      let text = '';
      return {
        text: (more) => { text += more; },
        end: () => json(response, {...base, content: [{type: 'text', text}], stop_reason: 'end_turn', usage}),
      };
    }
    const send = events(response);
    const event = (type, data) => send({type, ...data}, type);
    let index = -1, open, reason = 'end_turn';
    const close = () => { if (open) event('content_block_stop', {index}); open = undefined; };
    const start = (block) => {
      if (open === 'text' && block.type === 'text') return;
      close();
      open = block.type;
      event('content_block_start', {index: ++index, content_block: block});
    };
    event('message_start', {message: {...base, content: [], stop_reason: null, usage}});
    return {
      text(text) {
        start({type: 'text', text: ''});
        event('content_block_delta', {index, delta: {type: 'text_delta', text}});
      },
      call({name}, args) {
        reason = 'tool_use';
        start({type: 'tool_use', id: fresh('toolu'), name, input: {}});
        event('content_block_delta', {index, delta: {type: 'input_json_delta', partial_json: JSON.stringify(args)}});
      },
      end() {
        close();
        event('message_delta', {delta: {stop_reason: reason, stop_sequence: null}, usage: {output_tokens: 5}});
        event('message_stop', {});
        response.end();
      },
    };
  },
};

const counted = {
  serves: (method, path) => path.endsWith('/count_tokens') || path.endsWith(':countTokens'),
  answer: (response) => json(response, {input_tokens: 10, totalTokens: 10}),
};

// Gemini, generateContent.
const generate = {
  name: 'generate',
  serves: (method, path) => method === 'POST' && /:(stream)?generateContent$/i.test(path),
  read: ({contents = [], tools = []}) => turnOf(
    contents.flatMap(({role, parts = []}) => (role === 'model' ? [] : parts.map((part) => {
      if (part.functionResponse) return {result: textOf(part.functionResponse.response?.output ?? part.functionResponse.response)};
      return {said: part.text ?? ''};
    }))),
    tools.flatMap(({functionDeclarations = []}) => functionDeclarations.map(({name}) => ({name}))),
  ),
  write(response, {generationConfig: {responseJsonSchema, responseSchema} = {}}, path) {
    const schema = responseJsonSchema ?? responseSchema;
    const one = (parts, reason) => ({
      candidates: [{index: 0, content: {role: 'model', parts}, ...(reason && {finishReason: reason})}],
      usageMetadata: {promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15}, modelVersion: 'none',
    });
    const beside = schema && JSON.stringify(madeUp(schema));
    if (!path.includes('stream')) {
      const parts = [];
      return {beside, text: (text) => parts.push({text}), call: ({name}, args) => parts.push({functionCall: {name, args}}), end: () => json(response, one(parts, 'STOP'))};
    }
    const send = events(response);
    return {
      beside,
      text: (text) => send(one([{text}])),
      call: ({name}, args) => send(one([{functionCall: {name, args}}])),
      end() { send(one([{text: ''}], 'STOP')); response.end(); },
    };
  },
};

// madeUp is a value of a JSON schema.
function madeUp(schema) {
  switch (String(schema.type).toLowerCase()) {
    case 'object': return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, of]) => [name, madeUp(of)]));
    case 'array': return [];
    case 'number': case 'integer': return 1;
    case 'boolean': return false;
    default: return schema.enum?.[0] ?? 'none';
  }
}

const models = {
  serves: (method, path) => method === 'GET' && path.endsWith('/models'),
  answer: (response) => json(response, {object: 'list', data: [], models: []}),
};

export const dialects = [counted, chat, responses, messages, generate, models];
