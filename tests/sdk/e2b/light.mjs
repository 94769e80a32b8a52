// SPDX-License-Identifier: MIT
// Many sandboxes of the emulated E2B that are only on record, and what its log says of them.
import { Sandbox } from 'e2b'
import { done, is, ok, part } from './tap.mjs'

const control = (method, what, body) => fetch(`${process.env.EMULATOR}/_emulator/${what}`, {
	method, body: body && JSON.stringify(body) })
const log = async () => (await (await control('GET', 'log')).json()).requests
const create = (n, suite) => Promise.all(Array.from({ length: n }, () =>
	Sandbox.create({ timeoutMs: 300000, metadata: { suite } })))

await part('many', async () => {
	const all = await create(500, 'many')
	await control('DELETE', 'log')
	const pages = Sandbox.list({ query: { metadata: { suite: 'many' } }, limit: 100 })
	const seen = new Set()
	while (pages.hasNext) for (const i of await pages.nextItems()) seen.add(i.sandboxId)
	is(seen.size, 500, '500 are listed')
	is((await log()).map((r) => r.path.replace(/\?.*/, '')), Array(5).fill('/v2/sandboxes'),
		'in five requests')
	is((await all[0].commands.run('echo something')).exitCode, 0, 'a command does nothing, well')
	await Promise.all(all.map((s) => s.kill()))
	is((await Sandbox.list().nextItems()).length, 0, 'none is left')
})

await part('at one time', async () => {
	await control('DELETE', 'log')
	await control('POST', 'faults', { kind: 'slow', method: 'POST', path: '/v2/sandboxes',
		delay_ms: 1000, count: -1 })
	await control('POST', 'faults', { kind: 'slow', delay_ms: 100, count: -1 })
	await Promise.all((await create(50, 'slow')).map((s) => s.kill()))
	await control('DELETE', 'faults')
	const requests = await log()
	const creates = requests.filter((r) => r.method === 'POST')
	is(creates.length, 50, '50 are made')
	ok(Math.max(...creates.map((r) => r.began_ms)) < Math.min(...creates.map((r) => r.ended_ms)),
		'all of them together, by the log')
	ok(creates.every((r) => r.ended_ms - r.began_ms >= 1000), 'each as slow as it was told to be')
	ok(requests.filter((r) => r.method === 'DELETE').every((r) => r.ended_ms - r.began_ms >= 100),
		'and so is every other request')
})

done()
