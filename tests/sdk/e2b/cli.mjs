// SPDX-License-Identifier: MIT
// E2B's command line tool, unmodified, lists what there is on the emulated E2B.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Sandbox, Template } from 'e2b'
import { done, is, ok, part } from './tap.mjs'

const tool = join(import.meta.dirname, 'node_modules/.bin/e2b')
const e2b = async (...args) =>
	(await promisify(execFile)(process.execPath, [tool, ...args], { timeout: 120000 })).stdout

await part('the tool', async () => {
	const s = await Sandbox.create({ timeoutMs: 300000, metadata: { by: 'tool' } })
	await Template.build(Template().fromImage('debian:12').runCmd('true'), 'of-the-tool:v1')
	const boxes = JSON.parse(await e2b('sandbox', 'list', '--format', 'json'))
	is(boxes.map((b) => [b.sandboxId, b.state, b.metadata.by]), [[s.sandboxId, 'running', 'tool']],
		'lists sandboxes')
	ok((await e2b('sandbox', 'list')).includes(s.sandboxId), 'for people too')
	const templates = JSON.parse(await e2b('template', 'list', '--format', 'json'))
	is(templates.map((t) => [t.names, t.buildStatus]), [[['team/of-the-tool'], 'ready']],
		'and templates')
	ok((await e2b('template', 'list')).includes('of-the-tool'), 'for people too')
	await e2b('sandbox', 'kill', s.sandboxId)
	is(await s.isRunning(), false, 'and kills')
	await e2b('template', 'delete', 'of-the-tool', '--yes')
	is(await Template.exists('of-the-tool'), false, 'and deletes')
})

done()
