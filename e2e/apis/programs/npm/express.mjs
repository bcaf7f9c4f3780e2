// A small API as it is often written by hand: cookies, forms, redirects, its own errors, and ETags that only Express made.
import express from 'express';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { WebSocketServer } from 'ws';

const app = express();
app.use(express.json());
app.use(express.urlencoded({ extended: true }));

const users = new Map([[1, { id: 1, user_name: 'ann', balance: 1.10, status: 'active' }]]);
let last = 1;
const missing = (response) => response.status(404).json({ error: 'no such user', code: 'E_NF' });

app.get('/api/v1/users', (request, response) => response.set('X-Total-Count', String(users.size)).links({ next: '/api/v1/users?page=2' }).json([...users.values()]));
app.post('/api/v1/users', (request, response) => {
  if (!request.body.user_name) return response.status(400).json({ error: 'user_name required', code: 'E_VALIDATION' });
  const made = { id: ++last, ...request.body };
  users.set(made.id, made);
  return response.status(201).location(`/api/v1/users/${made.id}`).json(made);
});
app.post('/api/v1/users/bulk', (request, response) => response.json({ inserted: request.body.length }));
app.get('/api/v1/users/:id', (request, response) => (users.has(+request.params.id) ? response.json(users.get(+request.params.id)) : missing(response)));
app.patch('/api/v1/users/:id', (request, response) => {
  if (!users.has(+request.params.id)) return missing(response);
  users.set(+request.params.id, { ...users.get(+request.params.id), ...request.body });
  return response.json(users.get(+request.params.id));
});
app.delete('/api/v1/users/:id', (request, response) => (users.delete(+request.params.id) ? response.status(204).end() : missing(response)));
app.post('/api/v1/users/:id/activate', (request, response) => response.status(202).json({ ok: true }));
app.post('/api/v1/login', (request, response) => response.cookie('sid', 'abc', { httpOnly: true, sameSite: 'lax' }).cookie('theme', 'dark').json({ user: request.body.user }));
app.post('/api/v1/logout', (request, response) => response.clearCookie('sid').status(204).end());
app.get('/api/v1/old', (request, response) => response.redirect(301, `${request.protocol}://${request.get('host')}/api/v1/users/1`));
app.get('/api/v1/me', (request, response) => response.status(401).set('WWW-Authenticate', 'Basic realm="api"').send('who are you?'));
app.get('/api/v1/fail', () => { throw new Error('boom'); });
app.get('/files/:name', (request, response) => response.json({ name: request.params.name, url: request.originalUrl }));
app.get('/folder/', (request, response) => response.json({ url: request.originalUrl }));

// Large bodies, events, and an answer that asks to come again.
app.get('/blobs/:bytes', (request, response) => {
  const zeros = function* (left) { for (; left > 0; left -= 65536) yield Buffer.alloc(Math.min(left, 65536)); };
  Readable.from(zeros(+request.params.bytes)).pipe(response.type('application/octet-stream').set('Content-Length', request.params.bytes));
});
app.put('/blobs/:name', (request, response, next) => {
  const sum = createHash('sha256');
  let bytes = 0;
  request.on('data', (chunk) => { sum.update(chunk); bytes += chunk.length; }).on('error', next);
  request.on('end', () => response.status(201).json({ name: request.params.name, bytes, sum: sum.digest('hex') }));
});
app.get('/events', (request, response) => {
  const from = +(request.get('Last-Event-ID') ?? 0);
  if (from >= 4) return response.status(204).end();
  response.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' }).write(`retry: 10\n: from ${from}\n\n`);
  response.write(`id: ${from + 1}\ndata: one\ndata: more\n\n`);
  return response.end(`event: named\nid: ${from + 2}\ndata: ${from}\n\n`);
});
const came = new Set();
app.get('/busy/:client', (request, response) => {
  if (came.has(request.params.client)) return response.json({ ok: true });
  came.add(request.params.client);
  return response.status(503).set('Retry-After', '0').json({ error: 'come again' });
});

const server = createServer(app);
const sockets = new WebSocketServer({ noServer: true });
server.on('upgrade', (request, socket, head) => sockets.handleUpgrade(request, socket, head, (s) => s.on('message', (data) => s.send(`echo:${data}`))));
server.listen(Number(process.argv[2]), '127.0.0.1');
