// SPDX-License-Identifier: MIT
// What the SDK does not use of the emulated E2B: older routes, protobuf, streams of input,
// failures to order and the log.
import { gzipSync } from 'node:zlib'
import { Sandbox } from 'e2b'
import { done, eventually, is, ok, part, throws } from './tap.mjs'

const url = process.env.EMULATOR
const key = { 'X-API-Key': process.env.E2B_API_KEY }
const api = (method, path, body) =>
	fetch(url + path, { method, headers: key, body: body && JSON.stringify(body) })
const control = (method, what, body) =>
	fetch(`${url}/_emulator/${what}`, { method, body: body && JSON.stringify(body) })

const s = await Sandbox.create({ timeoutMs: 300000 })
const info = await (await api('GET', `/sandboxes/${s.sandboxId}`)).json()
const envdHeaders = {
	'X-Access-Token': info.envdAccessToken, 'E2b-Sandbox-Id': s.sandboxId,
	'E2b-Sandbox-Port': '49983' }
const envd = (path, type, body, headers) =>
	fetch(url + path, { method: 'POST', body,
		headers: { ...envdHeaders, 'Content-Type': type, ...headers } })

const envelope = (flags, data) => {
	const head = Buffer.alloc(5)
	head[0] = flags
	head.writeUInt32BE(data.length, 1)
	return Buffer.concat([head, Buffer.from(data)])
}
const envelopes = (bytes) => {
	const all = []
	for (let b = Buffer.from(bytes); b.length >= 5;) {
		const n = b.readUInt32BE(1)
		all.push({ flags: b[0], data: b.subarray(5, 5 + n) })
		b = b.subarray(5 + n)
	}
	return all
}
// One field of protobuf: text, bytes or a small number.
const field = (n, v) =>
	typeof v === 'number' ? Buffer.from([n << 3, v])
		: Buffer.concat([Buffer.from([n << 3 | 2, Buffer.byteLength(v)]), Buffer.from(v)])

await part('older routes', async () => {
	const made = await api('POST', '/sandboxes', { templateID: 'base', metadata: { v: '1' } })
	is(made.status, 201, 'v1 create')
	const box = await made.json()
	ok(!box.envdAccessToken, 'is open unless it is asked for')
	const listed = await (await api('GET', '/sandboxes?metadata=v%3D1')).json()
	is(listed.map((b) => b.sandboxID), [box.sandboxID], 'v1 list')
	const left = new Date(listed[0].endAt) - new Date(listed[0].startedAt)
	is(left, 15000, 'and has 15 seconds')
	is((await api('POST', `/sandboxes/${box.sandboxID}/connect`, { timeout: 60 })).status, 200,
		'v1 connect')
	is((await api('POST', `/sandboxes/${box.sandboxID}/refreshes`, { duration: 90 })).status, 204,
		'refreshes')
	is((await api('POST', `/sandboxes/${box.sandboxID}/pause`)).status, 204, 'pause')
	is((await api('POST', `/sandboxes/${box.sandboxID}/timeout`, { timeout: 60 })).status, 409,
		'no timeout of a paused one')
	is((await api('POST', `/sandboxes/${box.sandboxID}/resume`, { timeout: 60 })).status, 201,
		'resume')
	is((await api('POST', `/sandboxes/${box.sandboxID}/resume`, { timeout: 60 })).status, 409,
		'of a running one')
	is((await api('DELETE', `/sandboxes/${box.sandboxID}`)).status, 204, 'delete')
	const missing = await api('DELETE', `/sandboxes/${box.sandboxID}`)
	is([missing.status, (await missing.json()).code], [404, 404], 'of none')
	is((await api('PUT', '/sandboxes')).status, 405, 'another method')
	is((await api('POST', '/v2/sandboxes', { templateID: 'base', timeout: 0 })).status, 400,
		'no time at all')
	is((await api('POST', '/v2/sandboxes', { templateID: 'none' })).status, 404, 'no template')
	is((await fetch(`${url}/v2/sandboxes`)).status, 401, 'no key')
})

await part('pause without memory', async () => {
	const box = await Sandbox.create({ timeoutMs: 300000 })
	await box.files.write('kept', 'x')
	await box.commands.run('sleep 1000', { background: true })
	is(await box.pause({ keepMemory: false }), true, 'pause')
	const back = await Sandbox.connect(box.sandboxId)
	is(await back.files.read('kept'), 'x', 'files are there')
	is((await back.commands.run('ps ax -o args=')).stdout.includes('sleep 1000'), false,
		'processes are not')
	await back.kill()
})

await part('at its timeout', async () => {
	const lifecycle = { onTimeout: 'pause', autoResume: true }
	const box = await Sandbox.create({ timeoutMs: 1000, lifecycle })
	await eventually('a sandbox pauses', async () => (await box.getInfo()).state === 'paused')
	is((await box.commands.run('echo awake')).stdout, 'awake\n', 'and is woken by what it is asked')
	is((await box.getInfo()).state, 'running', 'so it runs')
	await box.kill()
})

await part('who may', async () => {
	const list = (headers) => fetch(`${url}/process.Process/List`, { method: 'POST', body: '{}',
		headers: { 'Content-Type': 'application/json', ...headers } })
	is((await list({ 'E2b-Sandbox-Id': s.sandboxId, 'E2b-Sandbox-Port': '49983' })).status, 401,
		'no token')
	is((await list({ ...envdHeaders, 'X-Access-Token': 'no' })).status, 401, 'a wrong token')
	is((await list(envdHeaders)).status, 200, 'the token')
	is((await list({ ...envdHeaders, 'E2b-Sandbox-Id': 'inobody' })).status, 502, 'no sandbox')
	is((await list({ 'E2b-Sandbox-Id': s.sandboxId })).status, 400, 'no port')
})

await part('protobuf', async () => {
	const config = Buffer.concat([field(1, 'sh'), field(2, '-c'),
		field(2, 'echo $A; exit 3'), field(3, Buffer.concat([field(1, 'A'), field(2, 'bc')]))])
	const reply = await envd('/process.Process/Start', 'application/connect+proto',
		envelope(0, field(1, config)))
	is(reply.headers.get('content-type'), 'application/connect+proto', 'a stream of its kind')
	const got = envelopes(await reply.arrayBuffer())
	is(got.length, 4, 'start, data, end and the end of it')
	is(got[1].data.toString('latin1'), '\x0a\x07\x12\x05\x0a\x03bc\n', 'data')
	ok(got[2].data.includes(Buffer.from([8, 6, 16, 1])), 'exit code 3, by itself')
	is([got[3].flags, got[3].data.toString()], [2, '{}'], 'the end')
	const stat = await envd('/filesystem.Filesystem/Stat', 'application/proto', field(1, '/tmp'))
	ok(Buffer.from(await stat.arrayBuffer()).includes('/tmp'), 'a unary call')
	is((await envd('/process.Process/List', 'text/plain', '{}')).status, 415, 'no such kind')
	is((await envd('/process.Process/List', 'application/json', '{')).status, 400, 'no message')
})

await part('input as a stream', async () => {
	const cat = await s.commands.run('cat', { background: true, stdin: true })
	const say = (doc) => envelope(0, JSON.stringify(doc))
	const data = (text) => say({ data: { input: { stdin: btoa(text) } } })
	const reply = await envd('/process.Process/StreamInput', 'application/connect+json',
		Buffer.concat([say({ start: { process: { pid: cat.pid } } }), data('a'),
			say({ keepalive: {} }), data('b\n')]))
	is(envelopes(await reply.arrayBuffer()).map((e) => e.data.toString()), ['{}', '{}'],
		'is taken in order')
	await s.commands.closeStdin(cat.pid)
	is((await cat.wait()).stdout, 'ab\n', 'and arrives')
	const none = await envd('/process.Process/StreamInput', 'application/connect+json',
		say({ start: { process: { pid: 4000000 } } }))
	ok(envelopes(await none.arrayBuffer())[0].data.includes('not_found'), 'no such process')
})

await part('keepalive and tags', async () => {
	const reply = await envd('/process.Process/Start', 'application/connect+json',
		envelope(0, JSON.stringify({ tag: 'slow', process: { cmd: 'sleep', args: ['2.5'] } })),
		{ 'Keepalive-Ping-Interval': '1' })
	const got = envelopes(await reply.arrayBuffer()).map((e) => e.data.toString())
	ok(got.includes('{"event":{"keepalive":{}}}'), 'a silent stream says that it is there')
	is(got.at(-1), '{}', 'and ends')
	const again = await envd('/process.Process/Connect', 'application/connect+json',
		envelope(0, JSON.stringify({ process: { tag: 'slow' } })))
	const late = envelopes(await again.arrayBuffer()).map((e) => e.data.toString())
	ok(late.some((d) => d.includes('"exit status 0"')), 'what ended is remembered for a while')
	const signal = await envd('/process.Process/SendSignal', 'application/json',
		JSON.stringify({ process: { pid: 4000000 }, signal: 'SIGNAL_SIGTERM' }))
	is([signal.status, (await signal.json()).code], [404, 'not_found'], 'no such process')
})

await part('failures to order', async () => {
	const info = () => api('GET', `/sandboxes/${s.sandboxId}`)
	const order = (kind, more) => control('POST', 'faults', { kind, path: '/sandboxes/*', ...more })
	await control('DELETE', 'log')
	await order('status', { status: 429, headers: { 'Retry-After': '0' },
		body: '{"code":429,"message":"Rate limit exceeded"}', count: 2 })
	is((await s.getInfo()).state, 'running', 'the SDK tries again after a 429')
	const log = (await (await control('GET', 'log')).json()).requests
	is(log.map((r) => [r.method, r.status]), [['GET', 429], ['GET', 429], ['GET', 200]],
		'the log has each try')
	ok(log.every((r) => r.path === `/sandboxes/${s.sandboxId}`), 'with its path')
	await order('status', { status: 503, skip: 1 })
	is([(await info()).status, (await info()).status, (await info()).status], [200, 503, 200],
		'the second one alone')
	await order('reset')
	await throws('TypeError', 'reset', info)
	await order('truncate')
	await throws('TypeError', 'truncate', async () => await (await info()).json())
	await order('slow', { delay_ms: 300 })
	const begun = performance.now()
	is((await info()).status, 200, 'slow')
	ok(performance.now() - begun >= 299, 'takes its time')
	await order('hang')
	await throws('TimeoutError', 'hang', () =>
		fetch(`${url}/sandboxes/${s.sandboxId}`, { signal: AbortSignal.timeout(300) }))
	const box = await Sandbox.create({ timeoutMs: 300000 })
	await order('lose', { method: 'DELETE' })
	await throws('TypeError', 'lose', () => api('DELETE', `/sandboxes/${box.sandboxId}`))
	is(await box.isRunning(), false, 'and yet it is done')
	is((await control('POST', 'faults', { kind: 'none' })).status, 400, 'no such failure')
	await order('reset', { count: 100 })
	await control('DELETE', 'faults')
	is((await info()).status, 200, 'no failure is left')
})

await part('limits', async () => {
	const limit = (doc) => control('POST', 'limits', doc)
	is((await limit({ requests_per_second: -1 })).status, 400, 'one that cannot be')
	await limit({ requests_per_second: 3 })
	const answers = await Promise.all(Array.from({ length: 12 }, () =>
		api('GET', `/sandboxes/${s.sandboxId}`)))
	const late = answers.filter((r) => r.status === 429)
	ok(late.length >= 6, 'too many requests in a second')
	is(late[0].headers.get('retry-after'), '1', 'may come again')
	is((await late[0].json()).message, 'Rate limit exceeded', 'which it says')
	const states = await Promise.all(Array.from({ length: 6 }, () => s.getInfo()))
	is(states.map((i) => i.state), Array(6).fill('running'), 'the SDK does that by itself')
	await limit({ sandboxes: 2 })
	const both = await Promise.allSettled([1, 2].map(() => Sandbox.create({ timeoutMs: 300000 })))
	is(both.map((r) => r.status).sort(), ['fulfilled', 'rejected'], 'too many sandboxes')
	const { reason } = both.find((r) => r.status === 'rejected')
	is(reason.name, 'RateLimitError', 'is not worth another try')
	ok(/maximum number of concurrent E2B sandboxes \(2\)/.test(reason.message), 'and says how many')
	const box = both.find((r) => r.status === 'fulfilled').value
	await box.pause()
	const more = await Sandbox.create({ timeoutMs: 300000 })
	ok(more, 'a paused one does not count')
	await Promise.all([box.kill(), more.kill()])
	await limit({})
	await Promise.all((await Promise.all([1, 2, 3].map(() =>
		Sandbox.create({ timeoutMs: 300000 })))).map((b) => b.kill()))
})

await part('parts of a file, and gzip', async () => {
	await s.files.write('/tmp/letters', 'abcdefghijklmnopqrstuvwxyz')
	const get = async (headers, path = '/tmp/letters') => {
		const r = await fetch(`${url}/files?path=${path}`, {
			headers: { ...envdHeaders, 'Accept-Encoding': 'identity', ...headers } })
		return [r.status, r.headers.get('content-range'), await r.text()]
	}
	for (const [range, want] of [
		['bytes=2-4', [206, 'bytes 2-4/26', 'cde']],
		['bytes=23-', [206, 'bytes 23-25/26', 'xyz']],
		['bytes=-2', [206, 'bytes 24-25/26', 'yz']],
		['bytes=0-999', [206, 'bytes 0-25/26', 'abcdefghijklmnopqrstuvwxyz']],
		['bytes=26-', [416, 'bytes */26', 'invalid range\n']],
		['lines=1-2', [200, null, 'abcdefghijklmnopqrstuvwxyz']],
	]) is(await get({ Range: range }), want, range)
	await s.commands.run('head -c 3000000 /dev/zero >/tmp/zeros; printf end >>/tmp/zeros')
	is((await get({ Range: 'bytes=2999999-' }, '/tmp/zeros'))[2], '\0end', 'far in a large one')
	const raw = await fetch(`${url}/files?path=/tmp/zeros`, {
		headers: { ...envdHeaders, 'Accept-Encoding': 'gzip' } })
	is([raw.headers.get('content-encoding'), raw.headers.get('content-length'),
		(await raw.arrayBuffer()).byteLength], ['gzip', null, 3000003], 'gzip for who takes it')
	const put = (body) => envd('/files?path=/tmp/z', 'application/octet-stream', body,
		{ 'Content-Encoding': 'gzip' })
	is((await put(gzipSync('from gzip'))).status, 200, 'gzip is taken')
	is(await s.files.read('/tmp/z'), 'from gzip', 'as what it holds')
	is((await put('no gzip')).status, 400, 'unless it is none')
	const made = await fetch(`${url}/sandboxes/${s.sandboxId}/timeout`, { method: 'POST',
		headers: { ...key, 'Content-Encoding': 'gzip' }, body: gzipSync('{"timeout":200}') })
	is(made.status, 204, 'on the control plane too')
})

await s.kill()
done()
