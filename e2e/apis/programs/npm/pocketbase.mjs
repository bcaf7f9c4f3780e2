// A session of PocketBase's own SDK. Each answer that the SDK gets is printed as a line of JSON, with the step it is of.
// With a last argument JSON no file is uploaded.
import { EventSource } from 'eventsource';
import PocketBase from 'pocketbase';

globalThis.EventSource = EventSource;
const [url, email, password, only] = process.argv.slice(2);
const client = new PocketBase(url);
client.autoCancellation(false);

let step;
const say = (line) => process.stdout.write(`${JSON.stringify({ step, ...line })}\n`);
const plainFetch = globalThis.fetch;
client.beforeSend = (to, options) => ({ url: to, options: { ...options, fetch: async (...args) => {
  const answer = await plainFetch(...args);
  const header = {};
  answer.headers.forEach((value, name) => { header[name] = [value]; });
  say({ code: answer.status, header, body: await answer.clone().text() });
  return answer;
} } });
const run = async (name, act) => {
  step = name;
  try { await act(); } catch (error) { if (!error.status) say({ code: 0, header: {}, body: String(error.cause ?? error) }); }
};

const posts = client.collection('posts');
let record = { id: 'missing' };
await run('health', () => client.health.check());
await run('login-refused', () => client.collection('_superusers').authWithPassword(email, 'wrong'));
await run('login', () => client.collection('_superusers').authWithPassword(email, password));
await run('refresh', () => client.collection('_superusers').authRefresh());
await run('create-collection', () => client.collections.create({ name: 'posts', type: 'base', listRule: '', viewRule: '', createRule: '', updateRule: '', deleteRule: '',
  fields: [{ name: 'title', type: 'text', required: true, max: 20 }, { name: 'views', type: 'number' }, { name: 'status', type: 'text' }, { name: 'doc', type: 'file', maxSelect: 1 }] }));
await run('update-collection', () => client.collections.update('posts', { listRule: '' }));
await run('read-collection', () => client.collections.getOne('posts'));
await run('create', async () => { record = await posts.create({ title: 'one', views: 1, status: 'draft' }); });
await run('create-invalid', () => posts.create({ views: 1 }));
await run('read', () => posts.getOne(record.id));
await run('read-missing', () => posts.getOne('nonexistent'));
await run('list', () => posts.getList(1, 5, { filter: "title='one' && views>0", sort: '-views' }));
await run('list-invalid', () => posts.getList(1, 5, { filter: 'nonsense(' }));
await run('update', () => posts.update(record.id, { views: 2 }));
await run('update-atomic', () => posts.update(record.id, { 'views+': 2 }));
await run('update-invalid', () => posts.update(record.id, { title: '' }));
if (only !== 'JSON') await run('upload', async () => { record = await posts.create({ title: 'file', doc: new File([new Uint8Array(1000)], 'cover.bin') }); });
if (only !== 'JSON') await run('download', async () => { const to = client.files.getURL(record, record.doc); const answer = await plainFetch(to); say({ code: answer.status, header: {}, body: String((await answer.arrayBuffer()).byteLength) }); });
await run('subscribe', async () => {
  let arrive;
  const event = new Promise((resolve) => { arrive = resolve; });
  const late = new Promise((resolve) => { setTimeout(resolve, 20000, { action: 'no event' }).unref(); });
  await posts.subscribe('*', arrive);
  await posts.create({ title: 'event' });
  say({ code: 0, header: {}, body: (await Promise.race([event, late])).action });
  await posts.unsubscribe();
});
await run('settings', () => client.settings.update({ batch: { enabled: true, maxRequests: 10, timeout: 3 } }));
await run('batch', () => { const batch = client.createBatch(); batch.collection('posts').create({ title: 'b1' }); batch.collection('posts').create({ title: 'b2' }); return batch.send(); });
await run('delete', () => posts.delete(record.id));
await run('delete-missing', () => posts.delete(record.id));
await run('delete-collection', () => client.collections.delete('posts'));
process.exit(0);
