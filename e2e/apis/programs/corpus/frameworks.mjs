// Documents that frameworks generate of small APIs: NestJS's into nest.json, LoopBack's into loopback.json. Their
// decorators are called as the functions that they are.
import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import * as nest from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import * as swagger from '@nestjs/swagger';
import loopback from '@loopback/rest';
import repository from '@loopback/repository';

function nestMethod(type, name, decorators, parameters, types) {
  Reflect.defineMetadata('design:paramtypes', types, type.prototype, name);
  parameters.forEach((decorate, i) => decorate(type.prototype, name, i));
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, name);
  decorators.forEach((decorate) => decorate(type.prototype, name, descriptor));
}

async function ofNest() {
  const { ApiProperty, ApiPropertyOptional, ApiBody, ApiOkResponse, PartialType } = swagger;
  class Address {}
  ApiProperty({ type: String, minLength: 1 })(Address.prototype, 'street');
  ApiProperty({ type: String, pattern: '^[0-9]{5}$' })(Address.prototype, 'code');
  class Order {}
  ApiProperty({ type: Number, readOnly: true })(Order.prototype, 'id');
  ApiProperty({ type: String, maxLength: 40 })(Order.prototype, 'customer');
  ApiProperty({ type: 'integer', minimum: 1, maximum: 100, default: 1 })(Order.prototype, 'quantity');
  ApiPropertyOptional({ enum: ['open', 'paid', 'sent'], nullable: true })(Order.prototype, 'state');
  ApiPropertyOptional({ type: [String], maxItems: 3 })(Order.prototype, 'tags');
  ApiPropertyOptional({ type: () => Address })(Order.prototype, 'address');
  ApiPropertyOptional({ type: String, format: 'date-time' })(Order.prototype, 'due');
  class ChangedOrder extends PartialType(Order) {}

  class Orders { list() {} create() {} find() {} replace() {} change() {} remove() {} pay() {} }
  const id = nest.Param('id', nest.ParseIntPipe);
  swagger.ApiQuery({ name: 'limit', required: false, schema: { type: 'integer', minimum: 1, maximum: 50 } })(Orders.prototype, 'list', Object.getOwnPropertyDescriptor(Orders.prototype, 'list'));
  nestMethod(Orders, 'list', [nest.Get(), ApiOkResponse({ type: [Order] })], [nest.Query('limit')], [Number]);
  nestMethod(Orders, 'create', [nest.Post()], [nest.Body()], [Order]);
  nestMethod(Orders, 'find', [nest.Get(':id'), ApiOkResponse({ type: Order })], [id], [Number]);
  nestMethod(Orders, 'replace', [nest.Put(':id')], [id, nest.Body()], [Number, Order]);
  nestMethod(Orders, 'change', [nest.Patch(':id'), ApiBody({ type: ChangedOrder })], [id, nest.Body()], [Number, ChangedOrder]);
  nestMethod(Orders, 'remove', [nest.Delete(':id')], [id], [Number]);
  nestMethod(Orders, 'pay', [nest.Post(':id/pay'), swagger.ApiHeader({ name: 'X-Idempotency-Key', required: true })], [id, nest.Body()], [Number, Address]);
  nest.Controller('orders')(Orders);
  class App {}
  nest.Module({ controllers: [Orders] })(App);
  const app = await NestFactory.create(App, { logger: false });
  app.setGlobalPrefix('api');
  const document = swagger.SwaggerModule.createDocument(app, new swagger.DocumentBuilder().setTitle('orders').addBearerAuth().build());
  await app.close();
  return document;
}

async function ofLoopBack() {
  const { get, post, put, patch, del, param, requestBody, getModelSchemaRef, RestApplication } = loopback;
  const { model, property, Entity } = repository;
  class Todo extends Entity {}
  property({ type: 'number', id: true, generated: true })(Todo.prototype, 'id');
  property({ type: 'string', required: true, jsonSchema: { minLength: 1, maxLength: 60 } })(Todo.prototype, 'title');
  property({ type: 'boolean', default: false })(Todo.prototype, 'isDone');
  property({ type: 'array', itemType: 'string' })(Todo.prototype, 'tags');
  property({ type: 'date' })(Todo.prototype, 'due');
  property({ type: 'object', jsonSchema: { nullable: true } })(Todo.prototype, 'extra');
  model({ settings: { strict: true } })(Todo);

  class Todos { list() {} create() {} find() {} replace() {} change() {} remove() {} }
  const of = (title, options) => ({ required: true, content: { 'application/json': { schema: getModelSchemaRef(Todo, { title, ...options }) } } });
  const answer = { responses: { 200: { description: 'a todo', content: { 'application/json': { schema: getModelSchemaRef(Todo) } } } } };
  const add = (name, decorate, parameters) => {
    parameters.forEach((p, i) => p(Todos.prototype, name, i));
    decorate(Todos.prototype, name, Object.getOwnPropertyDescriptor(Todos.prototype, name));
  };
  add('list', get('/todos', answer), [param.query.integer('limit', { schema: { type: 'integer', minimum: 1 } }), param.query.string('title')]);
  add('create', post('/todos', answer), [requestBody(of('NewTodo', { exclude: ['id'] }))]);
  add('find', get('/todos/{id}', answer), [param.path.number('id')]);
  add('replace', put('/todos/{id}', answer), [param.path.number('id'), requestBody(of('Todo', {}))]);
  add('change', patch('/todos/{id}', answer), [param.path.number('id'), requestBody(of('TodoPartial', { partial: true }))]);
  add('remove', del('/todos/{id}', answer), [param.path.number('id')]);
  const app = new RestApplication({ rest: { openApiSpec: { servers: [{ url: '/' }] } } });
  app.controller(Todos);
  return (await app.getServer('RestServer')).getApiSpec();
}

writeFileSync('nest.json', JSON.stringify(await ofNest(), null, 1));
writeFileSync('loopback.json', JSON.stringify(await ofLoopBack(), null, 1));
process.exit(0);
