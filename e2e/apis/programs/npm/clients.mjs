// A session of each of four clients that programs in Node.js use: axios, ky, eventsource and ws. Each answer is printed as a line
// of JSON, with the step it is of. The first server is the one of express.mjs, the second the one of fastify.mjs.
import axios from 'axios';
import { EventSource } from 'eventsource';
import ky from 'ky';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { WebSocket } from 'ws';

const [express, fastify] = process.argv.slice(2);
const huge = 50 << 20;

let step;
const say = (code, header, body) => process.stdout.write(`${JSON.stringify({ step, code, header, body })}\n`);
const run = async (name, act) => {
  step = name;
  try { await act(); } catch (error) { say(0, {}, `${error.code ?? error.name}: ${error.message}`); }
};
const zeros = () => Readable.from((function* make(left) { for (; left > 0; left -= 65536) yield Buffer.alloc(Math.min(left, 65536)); })(huge));
const cover = (bytes) => {
  const form = new FormData();
  form.set('file', new File([new Uint8Array(bytes)], 'cover.bin'));
  return form;
};
const summed = async (stream) => {
  const sum = createHash('sha256');
  let bytes = 0;
  for await (const chunk of stream) { sum.update(chunk); bytes += chunk.length; }
  return `${bytes} ${sum.digest('hex')}`;
};

// axios, over node:http
const shown = async (asked) => {
  let answer;
  try { answer = await asked; } catch (error) { if (!error.response) throw error; answer = error.response; }
  const header = {};
  for (const [name, value] of Object.entries(answer.headers)) header[name] = [value].flat();
  say(answer.status, header, typeof answer.data === 'string' ? answer.data : JSON.stringify(answer.data));
  return answer;
};
const users = axios.create({ baseURL: `${express}/api/v1` });
const books = axios.create({ baseURL: `${fastify}/v1` });
await run('axios-list', () => shown(users.get('/users', { params: { page: 1, tag: ['a', 'b'], from: new Date(0) } })));
await run('axios-create', () => shown(users.post('/users', { user_name: 'böb', balance: 1.5 })));
await run('axios-create-refused', () => shown(users.post('/users', {})));
await run('axios-patch', () => shown(users.patch('/users/1', { status: 'idle' })));
await run('axios-form', () => shown(users.post('/login', new URLSearchParams({ user: 'ann' }))));
await run('axios-head', () => shown(users.head('/users/1')));
await run('axios-redirect', () => shown(users.get('/old')));
await run('axios-credentials', () => shown(users.get('/me', { auth: { username: 'a', password: 'b' } })));
await run('axios-delete', () => shown(users.delete('/users/99')));
await run('axios-book', () => shown(books.post('/books', { title: 'one' })));
await run('axios-book-read', async () => {
  const { headers } = await shown(books.get('/books/1'));
  await shown(books.get('/books/1', { headers: { 'If-None-Match': headers.etag } }));
});
await run('axios-upload', () => shown(books.post('/covers', cover(100000))));
await run('axios-huge-upload', () => shown(axios.put(`${express}/blobs/a`, zeros(), { headers: { 'Content-Type': 'application/octet-stream', 'Content-Length': huge }, maxRedirects: 0, maxBodyLength: Infinity })));
await run('axios-huge-download', async () => {
  const answer = await axios.get(`${express}/blobs/${huge}`, { responseType: 'stream' });
  say(answer.status, {}, await summed(answer.data));
});
await run('axios-parallel', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => users.get(`/users/${1 + (i % 2) * 98}`, { validateStatus: () => true })));
  say(0, {}, answers.map((one) => one.status).join());
});

// ky, over fetch
const told = async (asked) => {
  const answer = await asked;
  const header = {};
  answer.headers.forEach((value, name) => { header[name] = [value]; });
  say(answer.status, header, await answer.text());
  return answer;
};
const api = ky.create({ prefixUrl: fastify, throwHttpErrors: false, retry: 0 });
await run('ky-create', () => told(api.post('v1/books', { json: { title: 'two', tags: ['x'] } })));
await run('ky-list', () => told(api.get('v1/books', { searchParams: { limit: 5 } })));
await run('ky-put', () => told(api.put('v1/books/2', { json: { title: 'zwei', price_cents: 7 } })));
await run('ky-patch', () => told(api.patch('v1/books/2', { json: { price_cents: 8 } })));
await run('ky-publish', () => told(api.post('v1/books/2/publish')));
await run('ky-read', () => told(api.get('v1/books/2')));
await run('ky-missing', () => told(api.get('v1/books/99')));
await run('ky-login-refused', () => told(api.post('v1/login', { json: { user: 'bob' } })));
await run('ky-delete', () => told(api.delete('v1/books/2')));
await run('ky-upload', () => told(api.post('v1/covers', { body: cover(1000) })));
await run('ky-retry', () => told(ky.get(`${express}/busy/ky`, { retry: { limit: 2, maxRetryAfter: 1000 } })));
await run('ky-huge-upload', () => told(ky.put(`${express}/blobs/b`, { body: Readable.toWeb(zeros()), duplex: 'half', timeout: false, retry: 0 })));
await run('ky-huge-download', async () => {
  const answer = await ky.get(`${express}/blobs/${huge}`, { timeout: false });
  say(answer.status, {}, await summed(answer.body));
});

// eventsource, which comes again with the last id until it is told that there is no more
await run('events', () => new Promise((resolve) => {
  const source = new EventSource(`${express}/events`);
  const awake = setInterval(() => {}, 1000); // the client's own timer does not keep the process running
  const note = (event) => say(0, {}, `${event.type} ${event.lastEventId} ${event.data}`);
  source.onopen = () => say(200, {}, 'open');
  source.onmessage = note;
  source.addEventListener('named', note);
  source.onerror = (event) => { if (source.readyState === EventSource.CLOSED) { clearInterval(awake); say(event.code ?? 0, {}, 'closed'); resolve(); } };
}));

// ws
await run('sockets', () => new Promise((resolve, reject) => {
  const socket = new WebSocket(`${express.replace('http', 'ws')}/live?room=1`, ['chat.v2', 'chat.v1'], { headers: { Authorization: 'Bearer t' } });
  const large = Buffer.alloc(1 << 20, 7);
  socket.on('upgrade', (answer) => say(answer.statusCode, { 'sec-websocket-protocol': [answer.headers['sec-websocket-protocol']] }, ''));
  socket.on('open', () => { socket.send('grüß'); socket.send(large); socket.ping('beat'); });
  let left = 3;
  const done = (what) => { say(0, {}, what); left -= 1; if (left === 0) socket.close(4001, 'enough'); };
  socket.on('message', (data) => done(data.length > 100 ? `${data.length} bytes, ${createHash('sha256').update(data).digest('hex')}` : data.toString()));
  socket.on('pong', (data) => done(`pong ${data}`));
  socket.on('close', (code, reason) => { say(code, {}, reason.toString()); resolve(); });
  socket.on('error', reject);
}));
