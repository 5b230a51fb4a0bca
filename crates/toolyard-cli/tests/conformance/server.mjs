// The server behind the gateway in the conformance suite's server mode: the tools that the scenarios call, each as its
// scenario describes it. Run from a directory that has the suite in its node_modules; uses the official SDK, over stdio.

import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

const require = createRequire(`${process.cwd()}/here.js`);
const suite = createRequire(require.resolve('@modelcontextprotocol/conformance/package.json'));
const load = (path) => import(pathToFileURL(suite.resolve(`@modelcontextprotocol/sdk/${path}`)));
const {Server} = await load('server/index.js');
const {StdioServerTransport} = await load('server/stdio.js');
const {CallToolRequestSchema, CreateMessageResultSchema, ElicitResultSchema, ListToolsRequestSchema} =
    await load('types.js');

const pause = () => new Promise((done) => setTimeout(done, 50));
const text = (text) => ({content: [{type: 'text', text}]});
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const wav = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const image = {type: 'image', data: png, mimeType: 'image/png'};
const resource = (uri, mimeType, text) => ({type: 'resource', resource: {uri, mimeType, text}});
const none = {type: 'object', properties: {}};
const needs = (name) => ({type: 'object', properties: {[name]: {type: 'string'}}, required: [name]});

const elicit = (request, message, properties, required) =>
    request.send({method: 'elicitation/create',
        params: {mode: 'form', message, requestedSchema: {type: 'object', properties, ...(required && {required})}}},
        ElicitResultSchema);

const said = (what, {action, content}) => text(`${what}: action=${action}, content=${JSON.stringify(content ?? {})}`);

const titled = (...names) => names.map(([value, title]) => ({const: value, title}));
const options = ['option1', 'option2', 'option3'];

const tools = {
    test_simple_text: [none, () => text('This is a simple text response for testing.')],
    test_image_content: [none, () => ({content: [image]})],
    test_audio_content: [none, () => ({content: [{type: 'audio', data: wav, mimeType: 'audio/wav'}]})],
    test_embedded_resource: [none, () => ({content:
        [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')]})],
    test_multiple_content_types: [none, () => ({content: [
        {type: 'text', text: 'Multiple content types test:'},
        image,
        resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ]})],
    test_tool_with_logging: [none, async (request) => {
        for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
            await request.notify('notifications/message', {level: 'info', data});
            await pause();
        }
        return text('logged');
    }],
    test_error_handling: [none, () =>
        ({...text('This tool intentionally returns an error for testing'), isError: true})],
    test_tool_with_progress: [none, async (request) => {
        for (const progress of [0, 50, 100]) {
            const progressToken = request.token;
            await request.notify('notifications/progress', {progressToken, progress, total: 100});
            await pause();
        }
        return text(String(request.token));
    }],
    test_sampling: [needs('prompt'), async (request) => {
        const messages = [{role: 'user', content: {type: 'text', text: request.args.prompt}}];
        const {content} = await request.send(
            {method: 'sampling/createMessage', params: {messages, maxTokens: 100}}, CreateMessageResultSchema);
        return text(`LLM response: ${content.text}`);
    }],
    test_elicitation: [needs('message'), async (request) => {
        const field = (description) => ({type: 'string', description});
        const properties = {username: field("User's response"), email: field("User's email address")};
        const answer = await elicit(request, request.args.message, properties, ['username', 'email']);
        return said('User response', answer);
    }],
    test_elicitation_sep1034_defaults: [none, async (request) => said('Elicitation completed',
        await elicit(request, 'Please review the defaults', {
            name: {type: 'string', default: 'John Doe'},
            age: {type: 'integer', default: 30},
            score: {type: 'number', default: 95.5},
            status: {type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active'},
            verified: {type: 'boolean', default: true},
        }))],
    test_elicitation_sep1330_enums: [none, async (request) => said('Elicitation completed',
        await elicit(request, 'Please choose', {
            untitledSingle: {type: 'string', enum: options},
            titledSingle: {type: 'string', oneOf: titled(['value1', 'First Option'], ['value2', 'Second Option'])},
            legacyEnum: {type: 'string', enum: ['opt1', 'opt2', 'opt3'],
                enumNames: ['Option One', 'Option Two', 'Option Three']},
            untitledMulti: {type: 'array', items: {type: 'string', enum: options}},
            titledMulti: {type: 'array',
                items: {anyOf: titled(['value1', 'First Choice'], ['value2', 'Second Choice'])}},
        }))],
    test_reconnection: [none, () => text('Reconnection test completed')],
    json_schema_2020_12_tool: [{
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        $defs: {address: {$anchor: 'addressDef', type: 'object',
            properties: {street: {type: 'string'}, city: {type: 'string'}}}},
        properties: {
            name: {type: 'string'},
            address: {$ref: '#/$defs/address'},
            contactMethod: {type: 'string', enum: ['phone', 'email']},
            phone: {type: 'string'},
            email: {type: 'string'},
        },
        allOf: [{anyOf: [{required: ['phone']}, {required: ['email']}]}],
        if: {properties: {contactMethod: {const: 'phone'}}, required: ['contactMethod']},
        then: {required: ['phone']},
        else: {required: ['email']},
        additionalProperties: false,
    }, () => text('taken')],
};

const info = {name: 'conformance fixture', version: '1'};
const server = new Server(info, {capabilities: {tools: {}, logging: {}}, enforceStrictCapabilities: false});
server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.entries(tools).map(([name, [inputSchema]]) =>
        ({name, description: `does what ${name} asks for`, inputSchema, annotations: {readOnlyHint: true}})),
}));
server.setRequestHandler(CallToolRequestSchema, ({params}, extra) => tools[params.name][1]({
    args: params.arguments ?? {},
    token: params._meta?.progressToken,
    notify: (method, params) => extra.sendNotification({method, params}),
    send: (request, schema) => extra.sendRequest(request, schema),
}));
await server.connect(new StdioServerTransport());
