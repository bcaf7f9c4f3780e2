// A server of notes by Fastify, as its guide writes it: notes.mjs PORT plain|etags. It does not compare If-Match, nor does the
// plugin that makes ETags.
import etag from '@fastify/etag';
import Fastify from 'fastify';

const [port, etags] = process.argv.slice(2);
const app = Fastify();
const notes = new Map();

// As long as a database may take.
const pause = () => new Promise(done => setTimeout(done, 5));
const found = (note, reply) => note ?? reply.code(404).send({ error: 'no such note' });

if (etags === 'etags') await app.register(etag);

app.get('/notes/:id', async (request, reply) => {
  await pause();
  return found(notes.get(request.params.id), reply);
});
app.put('/notes/:id', async request => {
  await pause();
  notes.set(request.params.id, { ...request.body, id: request.params.id });
  return notes.get(request.params.id);
});
app.patch('/notes/:id', async (request, reply) => {
  await pause();
  const note = notes.get(request.params.id);
  if (note) notes.set(request.params.id, { ...note, ...request.body });
  return found(notes.get(request.params.id), reply);
});
app.delete('/notes/:id', async (request, reply) => {
  await pause();
  return reply.code(notes.delete(request.params.id) ? 204 : 404).send();
});

// The same with a time in each answer, so that no two reads are alike.
app.get('/timed/:id', async (request, reply) => {
  const note = notes.get(request.params.id);
  return note ? { ...note, servedAt: process.hrtime.bigint().toString() } : found(undefined, reply);
});
app.put('/timed/:id', async request => {
  notes.set(request.params.id, { ...request.body, id: request.params.id });
  return notes.get(request.params.id);
});

await app.listen({ port: Number(port), host: '127.0.0.1' });
