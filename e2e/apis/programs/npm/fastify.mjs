// An API of books, as a team writes it with Fastify: schemas, CORS, ETags, and a document that is generated.
import cors from '@fastify/cors';
import etag from '@fastify/etag';
import multipart from '@fastify/multipart';
import swagger from '@fastify/swagger';
import Fastify from 'fastify';

const [port, version = '3.0.3'] = process.argv.slice(2);
const app = Fastify({ bodyLimit: 64 << 20 });
await app.register(cors, { origin: true, credentials: true, exposedHeaders: ['Location', 'Retry-After'], methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] });
await app.register(etag);
await app.register(multipart, { limits: { fileSize: 64 << 20 } });
await app.register(swagger, { openapi: { openapi: version, info: { title: 'books', version: '1' } } });

app.addSchema({
  $id: 'Book', type: 'object', required: ['title'], additionalProperties: false,
  properties: {
    id: { type: 'integer', readOnly: true },
    title: { type: 'string', minLength: 1, maxLength: 20 },
    price_cents: { type: 'integer', minimum: 0, default: 100 },
    tags: { type: 'array', items: { type: 'string' }, default: [] },
    status: { type: 'string', enum: ['draft', 'live'], default: 'draft' },
  },
});
const Change = { type: 'object', properties: { title: { type: 'string', maxLength: 20 }, price_cents: { type: 'integer', minimum: 0 } }, additionalProperties: false };
const params = { type: 'object', properties: { id: { type: 'integer' } } };
const book = { $ref: 'Book#' };

const books = new Map();
let last = 0;
const find = (request, reply) => {
  const found = books.get(request.params.id);
  if (!found) reply.code(404).send({ error: { code: 'E_NO_BOOK', message: 'no such book' } });
  return found;
};

app.post('/v1/login', { schema: { body: { type: 'object', required: ['user'], properties: { user: { type: 'string' } } } } }, (request, reply) => {
  if (request.body.user !== 'ann') return reply.code(401).header('WWW-Authenticate', 'Bearer realm="books"').send({ error: { code: 'E_LOGIN' } });
  return reply.header('Set-Cookie', 'session=1; Path=/; HttpOnly').send({ token: 't' });
});
app.get('/v1/books', { schema: { querystring: { type: 'object', properties: { limit: { type: 'integer', minimum: 1, maximum: 50 } } },
  response: { 200: { type: 'object', properties: { items: { type: 'array', items: book }, next: { type: 'string', nullable: true } } } } } },
  (request) => ({ items: [...books.values()].slice(0, request.query.limit ?? 10), next: null }));
app.post('/v1/books', { schema: { body: book, response: { 201: book } } }, (request, reply) => {
  const made = { ...request.body, id: ++last };
  books.set(made.id, made);
  return reply.code(201).header('Location', `/v1/books/${made.id}`).send(made);
});
app.get('/v1/books/:id', { schema: { params, response: { 200: book } } }, (request, reply) => find(request, reply));
app.put('/v1/books/:id', { schema: { params, body: book, response: { 200: book } } }, (request, reply) => {
  if (!find(request, reply)) return reply;
  const made = { ...request.body, id: request.params.id };
  books.set(made.id, made);
  return made;
});
app.patch('/v1/books/:id', { schema: { params, body: Change, response: { 200: book } } }, (request, reply) => {
  const found = find(request, reply);
  if (!found) return reply;
  const made = { ...found, ...request.body };
  books.set(made.id, made);
  return made;
});
app.delete('/v1/books/:id', { schema: { params, response: { 204: { type: 'null' } } } }, (request, reply) => {
  if (!find(request, reply)) return reply;
  books.delete(request.params.id);
  return reply.code(204).send();
});
app.post('/v1/books/:id/publish', { schema: { params, response: { 200: book } } }, (request, reply) => {
  const found = find(request, reply);
  if (!found) return reply;
  found.status = 'live';
  return found;
});
app.post('/v1/covers', async (request) => {
  const file = await request.file();
  return { name: file.filename, size: (await file.toBuffer()).length };
});
app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger());
await app.listen({ port: Number(port), host: '127.0.0.1' });
