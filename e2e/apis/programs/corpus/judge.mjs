// A judge of requests: openapi-backend, with ajv. It reads a line of JSON a time and answers with one.
//
//   {"load": FILE}                   reads a document, of Swagger 2.0 too; the answer has it as OpenAPI 3
//   {"operation": …, "request": …}   judges a request; the answer has the keyword that fails, or none
//
// Schemas keep their references: ajv resolves them in the document, so that recursive schemas work and nothing is
// written out more than once.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { OpenAPIValidator } from 'openapi-backend';
import converter from 'swagger2openapi';
import { parse } from 'yaml';

const root = 'http://corpus.example/document';
let document, validator, operations;

// Where the members of a schema are schemas: by name, in a list, or by themselves.
const named = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];
const listed = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const single = ['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames', 'unevaluatedItems', 'unevaluatedProperties'];

function at(pointer) {
  let node = document;
  for (const part of pointer.slice(2).split('/')) node = node?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')];
  return node;
}

function follow(node) {
  for (let i = 0; node?.$ref?.startsWith('#/') && i < 20; i++) node = at(node.$ref);
  return node;
}

// A schema as ajv takes it, for requests: what is readOnly need not be there.
function schemaOf(schema) {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema;
  const old = document.openapi.startsWith('3.0');
  if (typeof schema.$ref === 'string') {
    const $ref = schema.$ref.startsWith('#') ? root + schema.$ref : schema.$ref;
    if (old) return { $ref };
    schema = { ...schema, $ref };
  }
  const result = { ...schema };
  for (const key of named) {
    if (result[key] && typeof result[key] === 'object') result[key] = Object.fromEntries(Object.entries(result[key]).map(([k, v]) => [k, schemaOf(v)]));
  }
  for (const key of listed) if (Array.isArray(result[key])) result[key] = result[key].map(schemaOf);
  for (const key of single) if (result[key] !== undefined) result[key] = schemaOf(result[key]);
  for (const key of ['discriminator', 'example', 'examples', 'default', 'id', '$id', '$schema']) delete result[key];
  if (old) {
    for (const [bound, exclusive] of [['minimum', 'exclusiveMinimum'], ['maximum', 'exclusiveMaximum']]) {
      if (result[exclusive] === true && result[bound] !== undefined) {
        result[exclusive] = result[bound];
        delete result[bound];
      } else if (typeof result[exclusive] === 'boolean') delete result[exclusive];
    }
    if (typeof result.type !== 'string' || result.nullable !== true) delete result.nullable;
  }
  if (Array.isArray(result.required)) {
    result.required = result.required.filter((name) => !follow(schema.properties?.[name])?.readOnly);
    if (result.required.length === 0) delete result.required;
  } else delete result.required;
  return result;
}

// The components of the document, and its schemas elsewhere that references may name.
function adapted(node, place = []) {
  if (Array.isArray(node)) return node.map((n, i) => adapted(n, [...place, i]));
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => {
    if (key === 'schema') return [key, schemaOf(value)];
    if (key === 'schemas' && place.join() === 'components') return [key, Object.fromEntries(Object.entries(value).map(([k, v]) => [k, schemaOf(v)]))];
    return [key, key === 'example' || key === 'examples' ? undefined : adapted(value, [...place, key])];
  }));
}

// Swagger has no type null, and some documents have it: as a schema of OpenAPI 3.0.
function withoutNullType(node) {
  if (typeof node !== 'object' || node === null) return node;
  if (Array.isArray(node)) return node.map(withoutNullType);
  if (node.type === 'null') return { enum: [null] };
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withoutNullType(value)]));
}

async function load(file) {
  const text = readFileSync(file, 'utf8');
  document = text.trimStart().startsWith('{') ? JSON.parse(text) : parse(text, { maxAliasCount: -1, uniqueKeys: false, logLevel: 'silent' });
  if (document.swagger === '2.0') document = (await converter.convertObj(withoutNullType(document), { patch: true, warnOnly: true, resolveInternal: false })).openapi;
  const whole = adapted(document);
  operations = new Map();
  const instances = new Map();
  validator = new OpenAPIValidator({
    definition: { ...document, paths: {} },
    lazyCompileValidators: true,
    customizeAjv: (given, options, context) => {
      if (!instances.has(context)) {
        const ajv = document.openapi.startsWith('3.0') ? given : new Ajv2020(options);
        addFormats(ajv);
        ajv.addFormat('uuid4', /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i);
        for (const [name, format] of Object.entries(given.formats)) ajv.addFormat(name, format);
        ajv.addSchema(whole, root, undefined, false);
        instances.set(context, ajv);
      }
      return instances.get(context);
    },
    ajvOpts: { strict: false, validateSchema: false, validateFormats: true, logger: false, unicodeRegExp: false },
  });
  return { document };
}

// The operation as openapi-backend takes it: dereferenced, with the body in the one media type of the request.
function operationOf({ path, method, mediaType }) {
  const id = `${method} ${path} ${mediaType}`;
  if (operations.has(id)) return operations.get(id);
  const item = follow(document.paths[path]);
  const operation = item[method];
  const parameters = new Map();
  for (const parameter of [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(follow)) parameters.set(`${parameter.in} ${parameter.name}`, parameter);
  // Headers that OpenAPI does not let parameters describe, and preconditions.
  const described = [...parameters.values()].filter((p) => p.in !== 'header' || !/^(accept|content-type|authorization|if-.*|range)$/i.test(p.name));
  const result = { operationId: id, path, method, parameters: described.map((p) => {
    const content = p.content && Object.values(p.content)[0];
    return { ...p, schema: p.schema && schemaOf(p.schema), ...(content ? { content: { 'application/json': { schema: schemaOf(content.schema) } } } : {}) };
  }) };
  const body = follow(operation.requestBody);
  if (body) {
    const media = follow(body.content?.[mediaType]);
    result.requestBody = { required: body.required, content: { 'application/json': { schema: media?.schema === undefined ? {} : schemaOf(media.schema) } } };
  }
  operations.set(id, result);
  validator.requestValidators[id] = validator.buildRequestValidatorsForOperation(result);
  return result;
}

function judge({ operation, request }) {
  const o = operationOf(operation);
  const { valid, errors } = validator.validateRequest(request, o);
  if (valid) return { valid };
  const first = errors[0];
  return { valid, keyword: first.keyword, place: first.instancePath, message: first.message };
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answer;
  try {
    const question = JSON.parse(line);
    answer = question.load ? await load(question.load) : judge(question);
  } catch (e) {
    answer = { error: String(e?.message ?? e).slice(0, 300) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
