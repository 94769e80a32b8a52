// SPDX-License-Identifier: MIT
// Templates by the official SDK: built for real, of commands and with copied files, and booted.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sandbox, Template, waitForFile } from 'e2b'
import { done, eventually, is, ok, part, throws } from './tap.mjs'

const base = { timeoutMs: 300000 }
const url = process.env.EMULATOR
const api = (method, path, body) =>
	fetch(url + path, { method, headers: { 'X-API-Key': process.env.E2B_API_KEY },
		body: body && JSON.stringify(body) })
const uploads = async () => {
	const log = await (await fetch(`${url}/_emulator/log`)).json()
	return log.requests.filter((r) => r.method === 'PUT' && r.path.startsWith('/_upload/')).length
}
const boot = async (name, fn) => {
	const s = await Sandbox.create(name, base)
	try {
		await fn(s, async (command, options) => (await s.commands.run(command, options)).stdout)
	} finally {
		await s.kill()
	}
}

await part('a template of commands', async () => {
	const lines = []
	const t = Template().fromImage('debian:12')
		.runCmd('echo from the step; echo built >/home/user/mark')
		.runCmd(['echo one >/root/r', 'echo two >>/root/r'], { user: 'root' })
		.setEnvs({ A: 'x', B: '$A-y' })
		.runCmd('echo "$B" >b')
		.setWorkdir('/srv/app')
		.runCmd('pwd >here; id -un >>here')
		.setUser('worker')
		.setStartCmd('sleep 1000', waitForFile('/srv/app/here'))
	const info = await Template.build(t, 'commands:v1', { tags: ['stable'], cpuCount: 1,
		memoryMB: 256, onBuildLogs: (l) => lines.push(l.message) })
	is(info.name, 'commands:v1', 'it is built')
	ok(lines.some((l) => l.includes('RUN echo from the step')), 'the log has the step')
	ok(lines.some((l) => l.endsWith(']: from the step')), 'and what it said')
	await boot('commands:v1', async (s, out) => {
		is(await out('cat mark b', { cwd: '/home/user', user: 'user' }), 'built\nx-y\n',
			'steps were run, environment is of earlier ones')
		is(await out('cat /root/r', { user: 'root' }), 'one\ntwo\n', 'by another user')
		is(await out('cat here'), '/srv/app\nuser\n', 'the work directory is where a command begins')
		is(await out('id -un'), 'worker\n', 'as the last user')
		is(await out('echo "[$A]"'), '[]\n', 'environment is of the build alone')
		ok((await s.commands.list()).some((p) => p.args.join(' ').includes('sleep 1000')),
			'what starts with it runs')
		const i = await s.getInfo()
		is([i.cpuCount, i.memoryMB], [1, 256], 'it has the size')
		is(i.templateId, info.templateId, 'and is of the template')
		is((await api('DELETE', `/templates/${info.templateId}`)).status, 400,
			'a template in use cannot be deleted')
	})
	await boot('team/commands:stable', async (s, out) =>
		is(await out('cat /home/user/mark'), 'built\n', 'another tag boots the same'))
	await throws('SandboxError', 'no such tag', () => Sandbox.create('commands:none', base))
})

await part('a template with files', async () => {
	const dir = mkdtempSync(join(tmpdir(), 'context-'))
	try {
		mkdirSync(join(dir, 'tree/sub'), { recursive: true })
		writeFileSync(join(dir, 'a.txt'), 'a\n')
		writeFileSync(join(dir, 'tree/b'), 'b\n', { mode: 0o755 })
		writeFileSync(join(dir, 'tree/sub/c'), 'c\n')
		const make = () => Template({ fileContextPath: dir }).fromTemplate('commands:v1')
			.copy('a.txt', '/data/')
			.copy('tree', '/data/tree', { user: 'root', mode: 0o700 })
			.copy('a.txt', 'renamed')
		const before = await uploads()
		await Template.build(make(), 'files')
		is(await uploads() - before, 3, 'files are uploaded')
		await boot('files', async (s, out) => {
			is(await out('cat /data/a.txt /data/tree/b /data/tree/sub/c', { user: 'root' }),
				'a\nb\nc\n', 'and are there')
			is(await out('stat -c %U:%a /data/tree/sub/c /data/a.txt', { user: 'root' }),
				'root:700\nworker:644\n', 'of their owner and mode')
			is(await out('cat renamed mark', { cwd: '/srv/app' }).catch(() => ''), '',
				'only what was made is there')
			is(await out('cat /srv/app/renamed /home/user/mark'), 'a\nbuilt\n',
				'from the directory of the template that it is built from')
		})
		await Template.build(make(), 'files')
		is(await uploads() - before, 3, 'what is there is not uploaded again')
	} finally {
		rmSync(dir, { recursive: true })
	}
})

await part('a build that fails', async () => {
	const lines = []
	const t = Template().fromImage('debian:12').runCmd('true')
		.runCmd('echo before the end; echo wrong >&2; exit 7')
	const e = await throws('BuildError', 'it does', () =>
		Template.build(t, 'failing', { onBuildLogs: (l) => lines.push(`${l.level} ${l.message}`) }))
	ok(/exit 7.*exit status 7/.test(e?.message ?? ''), 'and says which command and how')
	ok(lines.some((l) => l.endsWith('[stderr]: wrong')), 'its last words are in the log')
	const { templateID } = await (await api('GET', '/templates/aliases/failing')).json()
	const { builds } = await (await api('GET', `/templates/${templateID}`)).json()
	is(builds.map((b) => b.status), ['error'], 'the build is on record')
	const status = await (await api('GET',
		`/templates/${templateID}/builds/${builds[0].buildID}/status?logsOffset=1`)).json()
	is([status.status, status.reason.step], ['error', '2'], 'with the step')
	is((await api('POST', `/v2/templates/${templateID}/builds/${builds[0].buildID}`,
		{ fromImage: 'x' })).status, 400, 'and does not start again')
	await throws('SandboxError', 'nothing boots from it', () => Sandbox.create('failing', base))
	const none = Template().fromTemplate('no-such-template')
	await throws('BuildError', 'no such template to build from', () =>
		Template.build(none, 'failing'))
})

await part('names and tags', async () => {
	is(await Template.exists('commands'), true, 'exists')
	is(await Template.exists('team/commands'), true, 'with the team')
	is(await Template.exists('nothing'), false, 'does not exist')
	await Template.assignTags('commands:v1', ['prod', 'extra'])
	const id = (await (await api('GET', '/templates/aliases/commands')).json()).templateID
	const tags = await Template.getTags('commands')
	is(tags.map((t) => t.tag).sort(), ['extra', 'prod', 'stable', 'v1'], 'tags')
	await boot('commands:prod', async (s, out) =>
		is(await out('cat /home/user/mark'), 'built\n', 'a new tag boots'))
	await Template.removeTags('commands', ['prod'])
	await throws('SandboxError', 'a removed one does not', () =>
		Sandbox.create('commands:prod', base))
	const list = await (await api('GET', '/templates')).json()
	is(list.map((t) => t.aliases[0]), ['failing', 'files', 'commands'], 'list')
	const one = await api('GET', '/v2/templates?limit=1')
	is([(await one.json()).length, Boolean(one.headers.get('x-next-token'))], [1, true],
		'a page of it')
	is((await api('DELETE', `/templates/${id}`)).status, 204, 'delete')
	is((await api('DELETE', `/templates/${id}`)).status, 404, 'of none')
	await throws('SandboxError', 'it boots no more', () => Sandbox.create('commands:v1', base))
	await boot('files', async (s, out) =>
		is(await out('cat /home/user/mark'), 'built\n', 'what was built from it does'))
	const files = await api('GET', `/templates/${list[1].templateID}/files/nonsense`)
	is(files.status, 400, 'a hash is a hash')
	for (const [body, what] of [[{}, 'no name'], [{ name: 'a b' }, 'no such name'],
		[{ name: 'x', memoryMB: 127 }, 'odd memory'], [{ name: 'x', tags: ['A B'] }, 'no such tag']])
		is((await api('POST', '/v3/templates', body)).status, 400, what)
	await eventually('what is no longer named is removed', async () =>
		(await api('DELETE', '/templates/files')).status === 204)
	is((await api('DELETE', '/templates/failing')).status, 204, 'the failing one too')
})

done()
