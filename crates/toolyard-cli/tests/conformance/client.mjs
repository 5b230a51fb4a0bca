// The client in the conformance suite's client mode: the program, with the server of a scenario in its configuration. Run as
// `node client.mjs PROGRAM URL` from a directory that has the suite in its node_modules, with the scenario in
// MCP_CONFORMANCE_SCENARIO. If a scenario needs only one call, `toolyard run` makes it. If it needs a client that lists tools
// or answers questions, the official SDK's client is used, which talks to the server through `toolyard mcp`.

import {spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {exit} from 'node:process';
import {pathToFileURL} from 'node:url';

const [program, url] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const given = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const dir = mkdtempSync(join(tmpdir(), 'toolyard-conformance-'));
process.on('exit', () => rmSync(dir, {recursive: true}));
const config = join(dir, 'toolyard.toml');
writeFileSync(config, `[builtin]\nenable = []\n[mcp.suite]\nurl = "${url}"\ntrust = true\nprefix = ""\n`);

function toolyard(...args) {
    const {status} = spawnSync(program, [...args, '--config', config], {cwd: dir, stdio: 'inherit'});
    exit(status ?? 1);
}

// Makes one call, as a model would, with `toolyard run`.
function run(name, args) {
    const call = {id: 'c1', type: 'function', function: {name, arguments: JSON.stringify(args)}};
    const response = {choices: [{message: {role: 'assistant', content: null, tool_calls: [call]}}]};
    writeFileSync(join(dir, 'response.json'), JSON.stringify(response));
    toolyard('run', 'response.json', '--approve', 'auto');
}

// A client of `toolyard mcp` that accepts every question, with the default answers of its form.
async function behind(talk) {
    const require = createRequire(`${process.cwd()}/here.js`);
    const suite = createRequire(require.resolve('@modelcontextprotocol/conformance/package.json'));
    const load = (path) => import(pathToFileURL(suite.resolve(`@modelcontextprotocol/sdk/${path}`)));
    const {Client} = await load('client/index.js');
    const {StdioClientTransport} = await load('client/stdio.js');
    const {ElicitRequestSchema} = await load('types.js');
    const client = new Client({name: 'conformance', version: '1'}, {capabilities: {elicitation: {form: {}}}});
    client.setRequestHandler(ElicitRequestSchema, ({params}) => {
        const fields = Object.entries(params.requestedSchema.properties);
        const content = fields.map(([name, {type, default: given}]) => [name, given ?? (type === 'boolean' ? true : '')]);
        return {action: 'accept', content: Object.fromEntries(content)};
    });
    const args = ['mcp', '--config', config, '--approve', 'auto'];
    await client.connect(new StdioClientTransport({command: program, args, cwd: dir, stderr: 'inherit'}));
    const {tools} = await client.listTools();
    await talk((name, args = {}) => client.callTool({name, arguments: args}), tools);
    await client.close();
}

// Calls all listed tools, with a value for each required argument.
const all = (call, tools) => Promise.all(tools.map(({name, inputSchema: {properties = {}, required = []}}) => {
    const samples = {string: 'x', number: 1, integer: 1, boolean: true, array: [], object: {}};
    const sample = (field) => samples[properties[field]?.type] ?? 'x';
    return call(name, Object.fromEntries(required.map((field) => [field, sample(field)])));
}));

switch (scenario) {
    case 'initialize':
    case 'json-schema-ref-no-deref':
        toolyard('tools');
        break;
    case 'tools_call':
        run('add_numbers', {a: 5, b: 3});
        break;
    case 'sse-retry':
        run('test_reconnection', {});
        break;
    case 'http-custom-headers':
        await behind(async (call) => {
            for (const {name, arguments: args} of given.toolCalls) await call(name, args);
        });
        break;
    case 'json-schema-2020-12-preservation':
        await behind((call, tools) => {
            const echo = tools.find(({name}) => name !== 'json_schema_2020_12_tool');
            const {inputSchema} = tools.find(({name}) => name === 'json_schema_2020_12_tool');
            return call(echo.name, {schema: inputSchema});
        });
        break;
    default:
        await behind(all);
}
