// The tools that the suite wants to see, as an MCP server on stdio: what a pod has behind its facade in these tests.
import {createInterface} from 'node:readline';
import {setTimeout as pause} from 'node:timers/promises';

const text = (text) => ({type: 'text', text});
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';
const resource = (uri, value) => ({type: 'resource', resource: {uri, mimeType: 'text/plain', text: value}});
const string = {type: 'string'};
const object = (properties = {}, required = []) => ({type: 'object', properties, required});

let next = 1;
const open = new Map();
const write = (message) => process.stdout.write(`${JSON.stringify({jsonrpc: '2.0', ...message})}\n`);
const notify = (method, params) => write({method, params});
const log = (data) => notify('notifications/message', {level: 'info', logger: 'fixture', data});
const ask = (method, params) => new Promise((resolve, reject) => {
  const id = next++;
  open.set(id, {resolve, reject});
  write({id, method, params});
});
const elicit = (message, properties, required = []) => ask('elicitation/create', {message, requestedSchema: object(properties, required)});
const told = async (message, properties, required) => {
  const {action, content} = await elicit(message, properties, required);
  return {content: [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)]};
};
const choices = (...names) => names.map(([value, title]) => ({const: value, title}));

const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object',
  $defs: {address: {$anchor: 'addressDef', type: 'object', properties: {street: string, city: string}}},
  properties: {name: string, address: {$ref: '#/$defs/address'}, contactMethod: {type: 'string', enum: ['phone', 'email']}, phone: string, email: string},
  allOf: [{anyOf: [{required: ['phone']}, {required: ['email']}]}],
  if: {properties: {contactMethod: {const: 'phone'}}, required: ['contactMethod']}, then: {required: ['phone']}, else: {required: ['email']},
  additionalProperties: false,
};

// Each tool: what it does, and its schema where it takes something.
const tools = {
  test_simple_text: [() => ({content: [text('This is a simple text response for testing.')]})],
  test_image_content: [() => ({content: [{type: 'image', data: png, mimeType: 'image/png'}]})],
  test_audio_content: [() => ({content: [{type: 'audio', data: wav, mimeType: 'audio/wav'}]})],
  test_embedded_resource: [() => ({content: [resource('test://embedded-resource', 'This is an embedded resource content.')]})],
  test_multiple_content_types: [() => ({content: [text('Several kinds of content:'), {type: 'image', data: png, mimeType: 'image/png'},
    {type: 'resource', resource: {uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data","value":123}'}}]})],
  test_error_handling: [() => ({content: [text('This tool intentionally returns an error for testing')], isError: true})],
  test_tool_with_logging: [async () => {
    for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) { log(line); await pause(50); }
    return {content: [text('Logged three times.')]};
  }],
  test_logging_tool: [async () => { log('this was not asked for'); await pause(50); return {content: [text('Logged once.')]}; }],
  test_tool_with_progress: [async (_, progressToken) => {
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) notify('notifications/progress', {progressToken, progress, total: 100, message: `${progress} of 100`});
      await pause(50);
    }
    return {content: [text('Told how far it was three times.')]};
  }],
  test_sampling: [async ({prompt}) => {
    const {content} = await ask('sampling/createMessage', {messages: [{role: 'user', content: text(prompt)}], maxTokens: 100});
    return {content: [text(`LLM response: ${content.text}`)]};
  }, object({prompt: string}, ['prompt'])],
  test_elicitation: [async ({message}) => {
    const {action, content} = await elicit(message, {username: string, email: string}, ['username', 'email']);
    return {content: [text(`User response: action: ${action}, content: ${JSON.stringify(content ?? {})}`)]};
  }, object({message: string}, ['message'])],
  test_elicitation_sep1034_defaults: [() => told('Your details?', {
    name: {type: 'string', default: 'John Doe'}, age: {type: 'integer', default: 30}, score: {type: 'number', default: 95.5},
    status: {type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active'}, verified: {type: 'boolean', default: true}})],
  test_elicitation_sep1330_enums: [() => told('Choose:', {
    untitledSingle: {type: 'string', enum: ['option1', 'option2', 'option3']},
    titledSingle: {type: 'string', oneOf: choices(['value1', 'First Option'], ['value2', 'Second Option'], ['value3', 'Third Option'])},
    legacyEnum: {type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three']},
    untitledMulti: {type: 'array', items: {type: 'string', enum: ['option1', 'option2', 'option3']}},
    titledMulti: {type: 'array', items: {anyOf: choices(['value1', 'First Choice'], ['value2', 'Second Choice'], ['value3', 'Third Choice'])}}})],
  json_schema_2020_12_tool: [(given) => ({content: [text(JSON.stringify(given))]}), schema2020],
  test_missing_capability: [() => { throw Object.assign(new Error('this tool needs sampling'), {code: -32021, data: {requiredCapabilities: {sampling: {}}}}); }],
  test_streaming_elicitation: [() => told('Go on?', {ok: {type: 'boolean'}})],
  test_input_required_result_elicitation: [() => told('What is your name?', {name: string}, ['name'])],
  test_input_required_result_tampered_state: [() => told('Please confirm', {ok: {type: 'boolean'}}, ['ok'])],
  test_input_required_result_request_state: [async () => {
    const {action} = await elicit('Please confirm', {ok: {type: 'boolean'}}, ['ok']);
    return {content: [text(`${action}: state-ok`)]};
  }],
  test_input_required_result_multi_round: [async () => {
    const first = await elicit('Step 1: What is your name?', {name: string}, ['name']);
    const second = await elicit('Step 2: What is your favorite color?', {color: string}, ['color']);
    return {content: [text(`${first.content?.name} likes ${second.content?.color}`)]};
  }],
};

async function answer({method, params}) {
  switch (method) {
    case 'initialize': return {protocolVersion: params.protocolVersion, capabilities: {tools: {}, logging: {}}, serverInfo: {name: 'fixture', version: '1'}};
    case 'ping': case 'logging/setLevel': return {};
    case 'tools/list': return {tools: Object.entries(tools).map(([name, [, inputSchema = object()]]) => ({name, description: `The fixture's ${name}`, inputSchema}))};
    case 'tools/call': {
      const tool = tools[params.name];
      if (!tool) break;
      try {
        return await tool[0](params.arguments ?? {}, params._meta?.progressToken);
      } catch (error) {
        if (error.code) throw error;
        return {content: [text(`The client said: ${error.message}`)], isError: true};
      }
    }
  }
  throw Object.assign(new Error('method not found'), {code: -32601});
}

for await (const line of createInterface({input: process.stdin})) {
  const message = JSON.parse(line);
  if (message.method === undefined) {
    const waiting = open.get(message.id);
    open.delete(message.id);
    if (message.error) waiting?.reject(new Error(message.error.message));
    else waiting?.resolve(message.result);
  } else if (message.id !== undefined) {
    answer(message).then((result) => write({id: message.id, result}), ({code = -32603, message: text, data}) => write({id: message.id, error: {code, message: text, data}}));
  }
}
