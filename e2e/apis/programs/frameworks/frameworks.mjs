// Servers of notes by frameworks, as their guides write them: frameworks.mjs FRAMEWORK PORT. None of them compares If-Match.
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const [framework, port] = process.argv.slice(2)
const notes = new Map()

// What each framework does with a request. The delay is as long as a database may take.
const pause = () => new Promise(done => setTimeout(done, 5))
async function read (id) { await pause(); return notes.get(id) }
async function put (id, note) { await pause(); notes.set(id, { ...note, id }); return notes.get(id) }
async function patch (id, change) {
  await pause()
  if (!notes.has(id)) return undefined
  notes.set(id, { ...notes.get(id), ...change })
  return notes.get(id)
}
async function drop (id) { await pause(); return notes.delete(id) }

const servers = {
  async express () {
    const express = require('express')
    const app = express()
    app.use(express.json())
    const answer = work => async (request, response) => {
      const note = await work(request.params.id, request.body)
      if (note === undefined || note === false) response.status(404).json({ error: 'no such note' })
      else if (note === true) response.status(204).end()
      else response.json(note)
    }
    app.get('/notes/:id', answer(read))
    app.put('/notes/:id', answer(put))
    app.patch('/notes/:id', answer(patch))
    app.delete('/notes/:id', answer(drop))
    app.listen(port, '127.0.0.1')
  },
  async nest () {
    require('reflect-metadata')
    const { Controller, Get, Put, Patch, Delete, HttpCode, Param, Body, Module, NotFoundException } = require('@nestjs/common')
    const { NestFactory } = require('@nestjs/core')
    const found = note => { if (!note) throw new NotFoundException(); return note }
    class Notes {
      async read (id) { return found(await read(id)) }
      async put (id, note) { return put(id, note) }
      async patch (id, change) { return found(await patch(id, change)) }
      async drop (id) { found(await drop(id)) }
    }
    const route = (name, how, takesBody, ...more) => {
      const property = Object.getOwnPropertyDescriptor(Notes.prototype, name)
      for (const decorate of [how(':id'), ...more]) decorate(Notes.prototype, name, property)
      Param('id')(Notes.prototype, name, 0)
      if (takesBody) Body()(Notes.prototype, name, 1)
    }
    route('read', Get, false)
    route('put', Put, true)
    route('patch', Patch, true)
    route('drop', Delete, false, HttpCode(204))
    Controller('notes')(Notes)
    class App {}
    Module({ controllers: [Notes] })(App)
    const app = await NestFactory.create(App, { logger: false })
    await app.listen(port, '127.0.0.1')
  },
  // Orders that Nest validates, by the pipe and the decorators of its guide.
  async orders () {
    require('reflect-metadata')
    const { Controller, Get, Post, Body, Query, Module, ValidationPipe } = require('@nestjs/common')
    const { NestFactory } = require('@nestjs/core')
    const is = require('class-validator')
    const { Type } = require('class-transformer')
    const rule = (type, name, ...rules) => rules.forEach(one => one(type.prototype, name))
    class Line {}
    rule(Line, 'sku', is.IsString(), is.IsNotEmpty())
    rule(Line, 'count', is.IsInt(), is.Min(1), is.Max(9))
    class Order {}
    rule(Order, 'title', is.IsNotEmpty(), is.IsString(), is.MaxLength(5))
    rule(Order, 'state', is.IsOptional(), is.IsIn(['open', 'paid']))
    rule(Order, 'lines', is.IsOptional(), is.IsArray(), is.ValidateNested({ each: true }), Type(() => Line))
    class Page {}
    rule(Page, 'limit', is.IsOptional(), Type(() => Number), is.IsInt(), is.Max(50))
    class Orders {
      list () { return [] }
      add (order) { return order }
    }
    const route = (name, how, parameter, type) => {
      Reflect.defineMetadata('design:paramtypes', [type], Orders.prototype, name)
      how()(Orders.prototype, name, Object.getOwnPropertyDescriptor(Orders.prototype, name))
      parameter()(Orders.prototype, name, 0)
    }
    route('list', Get, Query, Page)
    route('add', Post, Body, Order)
    Controller('orders')(Orders)
    class App {}
    Module({ controllers: [Orders] })(App)
    const app = await NestFactory.create(App, { logger: false })
    app.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true }))
    await app.listen(port, '127.0.0.1')
  },
  async loopback () {
    const { RestApplication, HttpErrors } = require('@loopback/rest')
    const app = new RestApplication({ rest: { host: '127.0.0.1', port: Number(port) } })
    const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } }
    const requestBody = { 'x-parameter-index': 1, content: { 'application/json': { schema: { type: 'object', additionalProperties: true } } } }
    const responses = { 200: { description: 'the note', content: { 'application/json': { schema: { type: 'object' } } } } }
    const found = note => { if (!note) throw new HttpErrors.NotFound(); return note }
    app.route('get', '/notes/{id}', { parameters: [id], responses }, async id => found(await read(id)))
    app.route('put', '/notes/{id}', { parameters: [id], requestBody, responses }, put)
    app.route('patch', '/notes/{id}', { parameters: [id], requestBody, responses }, async (id, change) => found(await patch(id, change)))
    app.route('delete', '/notes/{id}', { parameters: [id], responses: { 204: { description: 'gone' } } }, async id => { found(await drop(id)) })
    await app.start()
  },
  async couchdb () {
    const PouchDB = require('pouchdb-core').plugin(require('pouchdb-adapter-memory')).plugin(require('pouchdb-mapreduce'))
    const app = require('express')()
    app.use(require('express-pouchdb')(PouchDB, { mode: 'minimumForPouchDB', inMemoryConfig: true }))
    const db = new PouchDB('notes', { adapter: 'memory' })
    await db.info()
    app.listen(port, '127.0.0.1')
  }
}

await servers[framework]()
