'use strict';
// The page of the playground: it sends what is written to the gateway that serves it, a moment after each change, and shows
// the answer. A link carries all that is written in its fragment, which browsers send to no server.
const field = id => document.getElementById(id);
const texts = ['policies', 'method', 'path', 'contentType', 'body', 'old', 'user', 'dialect'];
const pause = 400; // milliseconds from the last change to the question
let timer, asking, examples = [];

function question() {
  const q = {};
  for (const id of texts) if (field(id).value) q[id] = field(id).value;
  const groups = field('groups').value.split(',').map(g => g.trim()).filter(g => g);
  if (groups.length) q.groups = groups;
  if (field('inForce').checked) { q.inForce = true; delete q.policies; delete q.dialect; }
  return q;
}

function fill(q) {
  for (const id of texts) field(id).value = typeof q[id] === 'string' ? q[id] : '';
  field('groups').value = Array.isArray(q.groups) ? q.groups.join(', ') : '';
  field('inForce').checked = q.inForce === true;
  field('more').open = ['contentType', 'old', 'user', 'dialect', 'groups'].some(id => field(id).value);
  toggle();
}

function toggle() {
  const inForce = field('inForce').checked;
  field('policies').disabled = field('dialect').disabled = field('example').disabled = inForce;
}

function encode(q) {
  let bytes = '';
  for (const b of new TextEncoder().encode(JSON.stringify(q))) bytes += String.fromCharCode(b);
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function decode(text) {
  const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return JSON.parse(new TextDecoder('utf-8', {fatal: true}).decode(Uint8Array.from(bytes, c => c.charCodeAt(0))));
}

function say(text, isBad) {
  const p = document.createElement('pre');
  p.className = isBad ? 'bad' : '';
  p.textContent = text;
  field('answer').replaceChildren(p);
}

async function ask() {
  if (asking) asking.abort();
  const mine = asking = new AbortController();
  const q = question();
  history.replaceState(null, '', '#' + encode(q));
  field('state').textContent = 'asking …';
  try {
    const answer = await fetch('/playground/ask', {
      method: 'POST', body: JSON.stringify(q), signal: mine.signal,
      headers: {'Content-Type': 'application/json', 'Accept': 'text/html'},
    });
    const text = await answer.text();
    if (mine.signal.aborted) return;
    if (answer.status === 429) { later(600); return; }
    field('state').textContent = '';
    if (answer.ok) field('answer').innerHTML = text; // the gateway shows every value as text
    else say(messageOf(text) || 'The gateway answers ' + answer.status + '.', true);
  } catch (e) {
    if (e.name === 'AbortError') return;
    field('state').textContent = '';
    say('The gateway does not answer: ' + e.message, true);
  }
}

function messageOf(text) {
  try { return JSON.parse(text).message; } catch { return ''; }
}

function later(wait) {
  clearTimeout(timer);
  timer = setTimeout(ask, wait);
}

function open() {
  if (location.hash.length < 2) return false;
  try { fill(decode(location.hash.slice(1))); ask(); } catch { say('The link cannot be read: a part of it is missing.', true); }
  return true;
}

async function begin() {
  const isLinked = open();
  const answer = await fetch('/playground/examples');
  if (!answer.ok) return;
  examples = await answer.json();
  for (const e of examples) {
    const option = document.createElement('option');
    option.value = option.textContent = e.name;
    field('example').append(option);
  }
  if (!isLinked) pick(examples[0].name);
}

function pick(name) {
  const e = examples.find(e => e.name === name);
  if (!e) return;
  field('example').value = name;
  field('about').textContent = e.about;
  fill(e.question);
  ask();
}

for (const id of [...texts, 'groups']) field(id).addEventListener('input', () => later(pause));
field('inForce').addEventListener('change', () => { toggle(); ask(); });
field('example').addEventListener('change', () => pick(field('example').value));
field('copy').addEventListener('click', async () => {
  history.replaceState(null, '', '#' + encode(question()));
  try { await navigator.clipboard.writeText(location.href); field('copied').textContent = 'copied'; }
  catch { field('copied').textContent = 'copy it from the address bar'; }
});
addEventListener('hashchange', open);
begin();
