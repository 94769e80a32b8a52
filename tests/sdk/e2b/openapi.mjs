// SPDX-License-Identifier: MIT
// Is every request of a record (agentbox-cloud-emulator --record) one that E2B describes?
//
//	node openapi.mjs RECORD FILE[:FILE]...
//
// Says which is not, a line each.  A request that was refused as malformed was sent on purpose.
import { readFileSync } from 'node:fs'
import Ajv from 'ajv'
import formats from 'ajv-formats'
import { parse } from 'yaml'

// Routes that are newer than the description.
const newer = ['POST /v2/sandboxes', 'POST /v2/sandboxes/*/connect']

const [record, files] = process.argv.slice(2)
// Text stands for numbers in parameters, not in bodies.
const bodies = new Ajv({ strict: false, allErrors: true })
const texts = new Ajv({ strict: false, allErrors: true, coerceTypes: true })
for (const ajv of [bodies, texts]) {
	formats(ajv)
	// Numbers of a size that JavaScript does not have are only numbers here.
	for (const f of ['int32', 'int64', 'uint32', 'uint64', 'float', 'double']) ajv.addFormat(f, true)
}

// What is not named is not described; a schema put together of several stays open.
function close(schema, open = false) {
	if (!schema || typeof schema !== 'object') return
	if (schema.properties && schema.additionalProperties === undefined && !open)
		schema.additionalProperties = false
	for (const part of [...schema.allOf ?? [], ...schema.oneOf ?? [], ...schema.anyOf ?? []])
		close(part, true)
	for (const part of Object.values(schema.properties ?? {})) close(part)
	close(schema.items)
}

const resolve = (doc, o) => o?.$ref
	? o.$ref.slice(2).split('/').reduce((at, key) => at[key], doc) : o

const routes = files.split(':').flatMap((file, n) => {
	const doc = parse(readFileSync(file, 'utf8'))
	const whole = new Set(Object.values(doc.components.schemas).flatMap((s) =>
		[...s.allOf ?? [], ...s.oneOf ?? [], ...s.anyOf ?? []].map((p) => p.$ref)))
	for (const [name, schema] of Object.entries(doc.components.schemas))
		close(schema, whole.has(`#/components/schemas/${name}`))
	const id = `file${n}`
	for (const ajv of [bodies, texts]) ajv.addSchema({ $id: id, components: doc.components })
	const compile = (ajv, schema) => {
		const text = JSON.stringify(schema).replaceAll('"#/components', `"${id}#/components`)
		return ajv.compile(JSON.parse(text))
	}
	return Object.entries(doc.paths).flatMap(([path, item]) =>
		Object.entries(item).filter(([m]) => /^(get|put|post|delete|patch|head)$/.test(m))
			.map(([method, op]) => {
				const parameters = [...item.parameters ?? [], ...op.parameters ?? []]
					.map((p) => resolve(doc, p))
					.map((p) => ({ ...p, array: resolve(doc, p.schema)?.type === 'array',
						valid: compile(texts, p.schema) }))
				const content = resolve(doc, op.requestBody)?.content
				const json = content?.['application/json']?.schema
				return { method: method.toUpperCase(), path, parameters, content,
					required: resolve(doc, op.requestBody)?.required,
					valid: json && compile(bodies, json) }
			}))
})

// Segments as they came; a literal one before a parameter.
function find(method, path) {
	const parts = path.split('/')
	const fits = routes.filter((r) => {
		const want = r.path.split('/')
		return r.method === method && want.length === parts.length &&
			want.every((w, i) => w.startsWith('{') || w === parts[i])
	})
	return fits.sort((a, b) => a.path.split('{').length - b.path.split('{').length)[0]
}

const isNewer = (method, path) => newer.some((n) => {
	const [m, p] = n.split(' ')
	return m === method && new RegExp(`^${p.replaceAll('*', '[^/]+')}$`).test(path)
})

function* wrong(r) {
	const url = new URL(r.uri, 'http://x')
	const path = r.uri.split('?')[0]
	const route = find(r.method, path)
	if (!route) {
		if (!r.inner && !isNewer(r.method, path)) yield 'no such route'
		return
	}
	const check = (p, value) => p.valid(p.array ? value.split(',') : value)
		? [] : [`${p.in} ${p.name}: ${texts.errorsText(p.valid.errors)}`]
	const parts = path.split('/')
	for (const [i, want] of route.path.split('/').entries()) {
		const p = route.parameters.find((p) => p.in === 'path' && want === `{${p.name}}`)
		if (p) yield* check(p, decodeURIComponent(parts[i]))
	}
	for (const [name, value] of url.searchParams) {
		const p = route.parameters.find((p) => p.in === 'query' && p.name === name)
		if (p) yield* check(p, value)
		else yield `query ${name} is not described`
	}
	for (const p of route.parameters)
		if (p.in === 'query' && p.required && !url.searchParams.has(p.name))
			yield `query ${p.name} is missing`
	if (!r.has_body) {
		if (route.required && route.valid) yield 'there is no body'
	} else if (!route.content) {
		yield 'a body is not described'
	} else if (route.valid) {
		if (r.body === undefined) yield 'the body is no JSON'
		else if (!route.valid(structuredClone(r.body))) yield `body: ${bodies.errorsText(route.valid.errors)}`
	}
}

const seen = new Set()
let n = 0
for (const line of readFileSync(record, 'utf8').split('\n').filter(Boolean)) {
	const r = JSON.parse(line)
	n++
	if ([400, 405].includes(r.status) || r.uri.startsWith('/_upload/')) continue
	for (const what of wrong(r)) seen.add(`${r.method} ${r.uri.split('?')[0]}: ${what}`)
}
for (const text of seen) console.log(text)
console.error(`${n} requests`)
process.exit(n ? 0 : 1)
