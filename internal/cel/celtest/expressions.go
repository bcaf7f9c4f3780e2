package celtest

// PlainExpressions read [PlainObject].
var PlainExpressions = []string{
	`object`, `object.spec`, `object.spec.replicas`, `object.spec.big`, `object.spec.most`, `object.spec.least`,
	`object.spec.ratio`, `object.spec.whole`, `object.spec.exp`, `object.spec.minus`, `object.spec.nothing`,
	`object.spec.paused`,
	`object.spec.text`, `object.spec.nested`, `object.spec.mixed`, `object.spec.none`, `object.spec.blank`,
	`object.spec.missing`, `object.missing.missing`, `object.spec.replicas.missing`, `object['spec']['with-dash']`,
	`object.spec['a.b']`, `object.spec['__proto__']`, `object.spec.__proto__`, `object.spec['if']`,
	`object.spec.namespace`,
	`object.spec.with__dash__dash`, `object[1]`, `object.spec.containers[0]`, `object.spec.containers[-1]`,
	`object.spec.containers[2]`,
	`object.spec.containers['a']`, `object.spec.containers[0.0].name`, `object.spec.containers[1u].name`,
	`object.spec.containers[0.5]`,
	`has(object.spec.replicas)`, `has(object.spec.missing)`, `has(object.spec.nothing)`, `has(object.missing.x)`,
	`has(object.spec.empty)`,
	`has(object.spec.replicas.x)`, `'replicas' in object.spec`, `1 in object.spec`, `'missing' in object.spec`,
	`null in object.spec.mixed`,
	`1 in object.spec.mixed`, `1.0 in object.spec.mixed`, `{'a': 1} in object.spec.mixed`, `'a' in object.spec.mixed`,
	`1u in object.spec.mixed`,
	`object.spec.replicas == 3`, `object.spec.replicas == 3.0`, `object.spec.replicas == 3u`,
	`object.spec.replicas != '3'`,
	`object.spec.whole == 1`, `object.spec.ratio < 1`, `object.spec.replicas < 5 && object.spec.replicas > 1`,
	`object.spec.text < 5`,
	`object.spec.replicas + 1`, `object.spec.most + 1`, `object.spec.ratio + 1.5`, `object.spec.ratio + 1`,
	`object.spec.replicas / 0`,
	`object.spec.replicas % 2`, `-object.spec.least`, `object.spec.text + 'b'`, `object.spec.text.size()`,
	`size(object.spec)`,
	`size(object.spec.containers)`, `size(object.spec.replicas)`, `object.spec.none == []`, `object.spec.blank == {}`,
	`object.spec == object.spec`, `object.spec == oldObject.spec`, `object.metadata == oldObject.metadata`,
	`object == oldObject`,
	`object.spec.containers == oldObject.spec.containers`, `object.spec.nested == [[1, 2], [3], []]`,
	`object.spec.mixed == [dyn(1), dyn('a'), dyn(true), dyn(null), dyn(1.5), dyn({'a': 1})]`, `object.spec.nested == [[1.0, 2.0], [3.0], []]`, `[dyn(1), dyn('a')].all(x, x == object.spec.replicas)`, `[[1, 2], [3], []] == object.spec.nested`,
	`{'app': 'web', 'example.com/tier': 'front'} == object.metadata.labels`,
	`object.metadata.labels == {'app': 'web', 'example.com/tier': 'front'}`,
	`object.metadata.labels == {'app': 'web'}`, `object.metadata.labels == 1`, `object.spec.containers == 1`,
	`object.spec.nothing == null`,
	`object.spec.containers + [1]`, `[1] + object.spec.nested`, `object.spec.nested + object.spec.none`,
	`object.spec.none + object.spec.nested`, `object.spec.containers + 1`,
	`object.spec.containers.all(c, c.name != '')`, `object.spec.containers.exists(c, c.image.endsWith(':latest'))`,
	`object.spec.containers.exists_one(c, c.name == 'web')`, `object.spec.containers.map(c, c.name)`,
	`object.spec.containers.filter(c, has(c.resources))`,
	`object.spec.containers.map(c, has(c.resources), c.resources.limits.cpu)`,
	`object.spec.containers.all(c, c.missing == 1)`,
	`object.spec.containers.all(c, c.name == 'web' || c.missing == 1)`,
	`object.spec.containers.exists(c, c.missing == 1 || c.name == 'log')`,
	`object.metadata.labels.all(k, k.contains('a'))`, `object.metadata.labels.map(k, object.metadata.labels[k])`,
	`object.metadata.labels.exists(k, k.startsWith('example.com/'))`, `object.spec.all(k, true)`,
	`object.spec.nested.all(l, l.all(i, i > 0))`,
	`object.spec.replicas.all(x, true)`, `object.spec.text.all(x, true)`,
	`object.spec.containers.all(i, c, i < 2 && c.name != '')`, `object.metadata.labels.all(k, v, k != v)`,
	`object.spec.containers.transformList(i, c, string(i) + c.name)`,
	`object.metadata.labels.transformMap(k, v, v.size())`,
	`object.metadata.labels.transformMapEntry(k, v, {v: k})`, `object.spec.containers.transformMap(i, c, c.name)`,
	`object.?spec.?replicas.orValue(1)`, `object.?spec.?missing.orValue(1)`, `object.?missing.?x.hasValue()`,
	`object.spec.?containers[?0].?name`,
	`object.spec.containers[?5].hasValue()`, `object[?'spec'][?'replicas']`,
	`optional.ofNonZeroValue(object.spec.none)`, `optional.ofNonZeroValue(object.spec.blank)`,
	`optional.ofNonZeroValue(object.spec.empty)`, `optional.of(object.spec.nothing)`,
	`[?object.?spec.?replicas, ?object.?x]`, `{?'a': object.?x, ?'b': object.?kind}`,
	`object.spec.?nothing.optMap(x, 1)`, `object.?metadata.?labels.optFlatMap(l, l.?app)`,
	`object.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`, `object.metadata.name.matches(object.kind)`,
	`object.spec.replicas.matches('a')`, `object.metadata.name.find('[a-c]+')`, `object.spec.text.findAll('.')`,
	`object.spec.text.findAll('.', 2)`,
	`object.kind.lowerAscii()`, `object.kind.replace('e', 'E')`, `object.kind.split('p')`,
	`object.spec.containers.map(c, c.name).join('/')`,
	`object.kind.charAt(0)`, `object.kind.substring(2, 4)`, `object.kind.indexOf('l')`, `object.kind.lastIndexOf('y')`,
	`' a '.trim()`,
	`'%s has %d'.format([object.kind, object.spec.replicas])`, `'%s'.format([object.spec.containers])`,
	`'%s'.format([object.metadata.labels])`, `'%.2f'.format([object.spec.ratio])`,
	`type(object)`, `type(object.spec.containers)`, `type(object.spec.replicas)`, `type(object.spec.nothing)`,
	`type(object.spec.whole) == double`,
	`string(object.spec.replicas)`, `int(object.spec.ratio)`, `double(object.spec.replicas)`,
	`string(object.spec.ratio)`, `bool(object.spec.paused)`, `dyn(object.spec.replicas) == 3`,
	`string(object)`, `int(object.metadata.name)`, `uint(object.spec.least)`, `bytes(object.kind)`,
	`duration(object.kind)`, `timestamp('2024-01-02T03:04:05Z').getFullYear()`,
	`quantity(object.spec.containers[0].resources.limits.cpu).isLessThan(quantity('1'))`, `quantity(object.spec.containers[0].resources.limits.memory)`, `isQuantity(object.kind)`,
	`url('https://' + object.metadata.name + '/a?b=c').getHost()`, `isURL(object.kind)`, `ip('10.0.0.1').family()`,
	`cidr('10.0.0.0/8').containsIP('10.1.2.3')`, `semver('1.2.3').major()`,
	`sets.contains(object.spec.nested[0], [1])`, `sets.intersects([1, 2], object.spec.nested[0])`,
	`sets.equivalent(object.spec.nested[0], object.spec.nested[0])`,
	`object.spec.nested.flatten()`, `object.spec.nested[0].sum()`, `object.spec.nested[0].max()`,
	`object.spec.nested[0].isSorted()`, `object.spec.nested[0].indexOf(2)`,
	`object.spec.containers.map(c, c.name).sort()`, `object.spec.containers.sortBy(c, c.name).map(c, c.name)`,
	`object.spec.nested[0].reverse()`, `object.spec.mixed.distinct()`, `object.spec.nested.slice(0, 1)`,
	`lists.range(3).map(i, i * 2)`, `object.spec.containers.first()`, `string(object.metadata.labels['a' + 'pp']).size()`, `lists.range(3)[1]`, `[1, 2].reverse()[0]`, `object.kind.split('p')[0] + 'x'`, `object.kind.split('p')[0].contains('e')`, `{'a': object.kind}['a'].contains('x')`, `object.kind.split('p')[int('0')].contains('e')`, `object.metadata.labels[object.kind.lowerAscii() + ''].contains('x')`, `[object].map(o, o.metadata.name + o.kind)[0].contains('b')`, `(object.spec.paused ? object.kind + 'a' : object.metadata.name + 'b').contains('w')`, `lists.range(3).map(i, lists.range(i)).flatten().map(i, string(i)).join()`, `'abc'.replace('b', object.kind).split('')[2].matches('[c-f]')`, `object.kind.matches('^D.{' + string(2) + '}')`, `object.spec.nested[2].last()`, `format.dns1123Label().validate(object.metadata.name)`, `format.dns1123Label().validate('A')`,
	`!format.named('dns1123Label').hasValue()`, `object.spec.replicas > 1 ? object.kind : object.missing`,
	`object.spec.replicas < 1 ? object.kind : object.missing`,
	`(object.spec.paused ? object.spec : object.metadata).name`,
	`object.missing || true`, `true || object.missing`, `object.missing && false`, `object.kind || true`,
	`object.spec.paused || object.spec.paused`, `!object.spec.paused`, `!object.kind`,
	`oldObject == null`, `oldObject.spec.replicas`, `params == null`, `namespaceObject == null`, `params.x`,
	`[object.spec.replicas, object.spec.big].map(x, x + 1)`, `{'a': object.spec.replicas}.a`, `{object.kind: 1}`,
	`[1, 2, 3].exists(x, x == object.spec.replicas)`, `object.spec.replicas in [1, 2, 3]`,
	`object.kind in ['Deployment', 'Pod']`, `object.spec.whole in [1, 2]`, `[object.spec.whole] == [1]`,
	`object.spec.containers.map(c, {'n': c.name}) == [{'n': 'web'}, {'n': 'log'}]`,
	`object.spec.containers.map(c, c.ports).flatten().map(p, p.containerPort)`, `object.spec.containers.all(c, object.spec.containers.filter(d, d.name == c.name).size() == 1)`,
	`object.metadata.labels['example.com/tier']`, `object.metadata.labels['none']`,
	`object.metadata.labels[?'none'].orValue('x')`,
	`'app' in object.metadata.labels && object.metadata.labels.app == 'web'`,
	`[1].map(object, object)`, `[1].map(object, .object.kind)`, `[object].map(o, [1].map(o, o))`, `dyn(b'a') in ['a']`,
	`[1, 2].all(object, object > 0) && object.kind == 'Deployment'`,
	`object.spec.mixed.all(x, x == 1)`, `object.spec.mixed.exists(x, x > 1)`,
	`object.spec.mixed.filter(x, type(x) == int)`, `dyn([1, 2]) == object.spec.nested[0]`,
}

// AnyExpressions read objects of any form.
var AnyExpressions = []string{
	`object`, `object.a`, `object.a.b`, `object[0]`, `object.a[1]`, `object.a['b']`, `has(object.a)`, `has(object.a.b)`,
	`object.?a.?b.orValue(1)`,
	`size(object)`, `size(object.a)`, `object == oldObject`, `object.a == object.b`, `object.a == oldObject.a`,
	`object.a in object.b`, `1 in object.a`,
	`object.a + object.b`, `object.a < object.b`, `object.a * 2`, `type(object.a)`, `string(object.a)`, `int(object.a)`,
	`double(object.a)`,
	`object.a.map(x, x)`, `object.a.filter(x, x == object.b)`, `object.a.all(x, x > 0)`, `object.a.exists(x, x == 'b')`,
	`object.a.all(i, x, i != x)`,
	`object.a.transformList(i, x, [i, x])`, `object.a.startsWith('b')`, `object.a.matches('b+')`,
	`object.a.contains(object.b)`, `object.a ? object.b : 1`,
	`object.a || object.b`, `object.a && object.b`, `!object.a`, `[object.a, object.a]`, `{'a': object.a}`,
	`object.a.size() + object.b.size()`,
	`sets.contains(object.a, object.b)`, `object.a.distinct()`, `object.a.flatten()`, `object.a.reverse()`,
	`'%s'.format([object.a])`, `optional.ofNonZeroValue(object.a)`,
	`object.a.join(',')`, `quantity(object.a).isGreaterThan(quantity('1'))`, `object.a.lowerAscii()`,
	`object.a.split(object.b)`, `object.a.replace(object.b, 'c')`,
}

// TypedSchema describes [TypedObject].
const TypedSchema = `
type: object
properties:
  spec:
    type: object
    properties:
      replicas: {type: integer}
      ratio: {type: number}
      name: {type: string}
      paused: {type: boolean}
      port: {x-kubernetes-int-or-string: true}
      maybe: {type: string, nullable: true}
      when: {type: string, format: date-time}
      day: {type: string, format: date}
      timeout: {type: string, format: duration}
      data: {type: string, format: byte}
      with-dash: {type: integer}
      a.b: {type: integer}
      a/b: {type: integer}
      namespace: {type: string}
      if: {type: integer}
      x__y: {type: integer}
      labels: {type: object, additionalProperties: {type: string}}
      maybes: {type: object, additionalProperties: {type: string, nullable: true}}
      list: {type: array, items: {type: integer}}
      lists: {type: array, items: {type: array, items: {type: string}}}
      set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      named:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}
      any: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: integer}}}
      anything: {x-kubernetes-preserve-unknown-fields: true}
      holder: {type: object, properties: {raw: {x-kubernetes-preserve-unknown-fields: true}, n: {type: integer}}}
      template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      empty: {type: object}
`

// TypedObject is valid against [TypedSchema].
const TypedObject = `{
  "apiVersion": "lab.example.com/v1", "kind": "Widget", "metadata": {"name": "w1", "labels": {"a": "b"}},
  "spec": {
    "replicas": 3, "ratio": 2, "name": "web", "paused": true, "port": 80, "maybe": null, "when": "2024-01-02T03:04:05Z", "day": "2024-01-02",
    "timeout": "90s", "data": "aGVsbG8=", "with-dash": 1, "a.b": 2, "a/b": 3, "namespace": "ns", "if": 4, "x__y": 5,
    "labels": {"app": "web", "with-dash": "d", "__x__": "u"}, "maybes": {"a": null, "b": "c"}, "list": [1, 2, 3], "lists": [["a"], []],
    "set": ["b", "a"], "named": [{"name": "x", "port": 1}, {"name": "y", "port": 2}],
    "any": {"known": 1, "unknown": {"a": [1]}}, "anything": {"x": 1}, "holder": {"raw": {"a": [1, 2.0]}, "n": 1},
    "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}, "empty": {}
  }
}`

// TypedExpressions are rules of [TypedSchema].
var TypedExpressions = []string{
	`self.kind`, `self.apiVersion`, `self.metadata.name`, `has(self.metadata.generateName)`, `self.metadata`,
	`self.spec.replicas`, `self.spec.ratio`, `self.spec.name`, `self.spec.paused`, `self.spec.port`, `self.spec.when`,
	`self.spec.day`, `self.spec.timeout`, `self.spec.data`,
	`has(self.spec.maybe)`, `self.spec.maybe`, `self.spec.?maybe.orValue('x')`, `self.spec.with__dash__dash`,
	`self.spec.a__dot__b`, `self.spec.a__slash__b`,
	`self.spec.namespace`, `self.spec.__namespace__`, `self.spec.__if__`, `self.spec.x__underscores__y`,
	`has(self.spec.__if__)`,
	`self.spec.labels`, `self.spec.labels.app`, `self.spec.labels['with-dash']`, `self.spec.labels['__x__']`,
	`'app' in self.spec.labels`, `'none' in self.spec.labels`, `self.spec.labels['none']`,
	`self.spec.maybes.b`, `self.spec.maybes.a`, `has(self.spec.maybes.a)`, `self.spec.maybes`,
	`self.spec.x__underscores__y == oldSelf.spec.x__underscores__y`,
	`self.spec.labels.all(k, self.spec.labels[k] != '')`, `self.spec.labels.map(k, k).sort()`,
	`self.spec.list`, `self.spec.list[1]`, `self.spec.list[3]`, `self.spec.list.all(x, x > 0)`, `2 in self.spec.list`,
	`dyn('a') in self.spec.list`, `self.spec.list.sum()`, `self.spec.list + [4]`,
	`self.spec.list == [1, 2, 3]`, `[1, 2, 3] == self.spec.list`, `self.spec.list == [3, 2, 1]`,
	`self.spec.list.exists(x, x == 2)`, `self.spec.list.map(x, x * 2)`, `self.spec.lists.map(l, l.size())`,
	`self.spec.lists.flatten()`,
	`self.spec.set == ['a', 'b']`, `self.spec.set == oldSelf.spec.set`, `self.spec.set + ['c', 'a']`,
	`['c', 'a'] + self.spec.set`, `self.spec.set.all(x, x in ['a', 'b'])`, `(self.spec.set + ['c']) == ['c', 'b', 'a']`,
	`self.spec.named == oldSelf.spec.named`, `self.spec.named.map(x, x.port)`,
	`self.spec.named.exists(x, x.name == 'y' && x.port == 2)`, `self.spec.named + oldSelf.spec.named`,
	`self.spec.named + oldSelf.spec.named == oldSelf.spec.named`,
	`oldSelf.spec.named == self.spec.named`, `self.spec.set == self.spec.set`,
	`self.spec.named[0] == oldSelf.spec.named[1]`,
	`self.spec.any.known`, `self.spec.any == oldSelf.spec.any`, `self.spec.holder == oldSelf.spec.holder`,
	`self.spec.holder == self.spec.holder`, `self.spec == oldSelf.spec`, `self == self`, `self == oldSelf`,
	`self.spec.any == self.spec.any`,
	`self.spec.template.kind`, `self.spec.template.metadata.name`, `has(self.spec.template.metadata.generateName)`,
	`self.spec.template == oldSelf.spec.template`, `self.spec.empty == oldSelf.spec.empty`, `size(self.spec.labels)`,
	`type(self.spec.port) == int`, `type(self.spec.port) == string`, `self.spec.port == 80`, `self.spec.port + 1 == 81`,
	`self.spec.port.matches('a')`, `type(self.spec.ratio)`, `type(self.spec)`, `type(self.spec.list)`,
	`type(self.spec.labels) == map`,
	`self.spec.when > timestamp('2024-01-01T00:00:00Z')`, `self.spec.timeout == duration('1m30s')`,
	`self.spec.timeout.getSeconds()`, `string(self.spec.data)`, `self.spec.when.getFullYear()`,
	`self.spec.day == timestamp('2024-01-02T00:00:00Z')`,
	`self.spec.replicas == oldSelf.spec.replicas`, `self.spec.replicas >= oldSelf.spec.replicas`,
	`self.spec.labels == oldSelf.spec.labels`, `self.spec.list == oldSelf.spec.list`,
	`dyn(self.spec).name`, `dyn(self.spec)['with-dash']`, `dyn(self.spec)['with__dash__dash']`,
	`dyn(self.spec.list)['a']`, `dyn(self.spec.labels)[1]`, `dyn(self.spec).all(k, k != '')`, `dyn(self) == 1`,
	`dyn(self.spec.list) == 1`,
	`self.spec.list.all(i, x, x == i + 1)`, `self.spec.labels.all(k, v, v != '')`,
	`self.spec.labels.transformMap(k, v, v.size())`, `self.spec.named.transformList(i, x, x.name)`,
	`optional.ofNonZeroValue(self.spec.list)`,
	`'%s'.format([self.spec.list])`, `'%s'.format([self.spec.labels])`, `self.spec.set.join(',')`,
	`self.spec.lists.map(l, l.join('-'))`, `sets.contains(self.spec.set, ['a'])`, `self.spec.set.sort()`,
	`self.spec.list.reverse()`, `self.spec.?list[?0].orValue(9)`,
	`self.spec.replicas == oldSelf.spec.replicas`, `self.spec.ratio == oldSelf.spec.ratio`,
	`self.spec.name == oldSelf.spec.name`, `self.spec.paused == oldSelf.spec.paused`,
	`self.spec.port == oldSelf.spec.port`, `self.spec.maybe == oldSelf.spec.maybe`,
	`self.spec.when == oldSelf.spec.when`, `self.spec.day == oldSelf.spec.day`,
	`self.spec.timeout == oldSelf.spec.timeout`, `self.spec.data == oldSelf.spec.data`,
	`self.spec.with__dash__dash == oldSelf.spec.with__dash__dash`, `self.spec.a__dot__b == oldSelf.spec.a__dot__b`,
	`self.spec.a__slash__b == oldSelf.spec.a__slash__b`, `self.spec.namespace == oldSelf.spec.namespace`,
	`self.spec.__if__ == oldSelf.spec.__if__`, `self.spec.labels == oldSelf.spec.labels`,
	`self.spec.maybes == oldSelf.spec.maybes`, `self.spec.list == oldSelf.spec.list`,
	`self.spec.lists == oldSelf.spec.lists`, `self.spec.set == oldSelf.spec.set`,
	`self.spec.named == oldSelf.spec.named`, `self.spec.any == oldSelf.spec.any`,
	`self.spec.holder == oldSelf.spec.holder`, `self.spec.template == oldSelf.spec.template`,
	`self.spec.empty == oldSelf.spec.empty`,
	`quantity('1Gi').isGreaterThan(quantity('1Mi'))`, `self.spec.name.size() < self.spec.replicas + 1`,
}
