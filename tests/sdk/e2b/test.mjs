// SPDX-License-Identifier: MIT
// The official SDK believes the emulated E2B: nothing of it is changed, and only its own
// environment variables lead it there.
import { createHash } from 'node:crypto'
import { Sandbox } from 'e2b'
import { done, eventually, is, ok, part, throws } from './tap.mjs'

const base = { timeoutMs: 300000 }
const hundredLines = Array.from({ length: 100 }, (_, i) => `line ${i}`).join('\n') + '\n'

await part('life of a sandbox', async () => {
	const s = await Sandbox.create({ ...base, metadata: { suite: 'life' }, envs: { GIVEN: 'yes' } })
	ok(/^i[a-z0-9]{20}$/.test(s.sandboxId), 'create gives an id of the real shape')
	const info = await s.getInfo()
	is(info.metadata, { suite: 'life' }, 'getInfo has the metadata')
	is(info.state, 'running', 'it runs')
	is(await s.isRunning(), true, 'envd is healthy')
	is((await s.commands.run('echo $GIVEN')).stdout, 'yes\n', 'environment of create is in commands')
	const again = await Sandbox.connect(s.sandboxId)
	is((await again.commands.run('echo again')).stdout, 'again\n', 'connect finds it')
	await s.setTimeout(120000)
	const left = (await s.getInfo()).endAt.getTime() - Date.now()
	ok(left > 100000 && left <= 120000, 'setTimeout counts from now')
	is((await s.getMetrics()).length, 1, 'metrics come')
	is(await s.kill(), true, 'kill')
	is(await Sandbox.kill(s.sandboxId), false, 'kill again finds nothing')
	is(await s.isRunning(), false, 'it does not run')
	await throws('SandboxNotFoundError', 'getInfo of none', () => Sandbox.getInfo(s.sandboxId))
	await throws('SandboxNotFoundError', 'connect to none', () => Sandbox.connect(s.sandboxId))
	await throws('TimeoutError', 'a command in none', () => s.files.list('/'))
	await throws('AuthenticationError', 'a wrong key is refused', () =>
		Sandbox.create({ ...base, apiKey: 'e2b_00' }))
	const short = await Sandbox.create({ timeoutMs: 1000 })
	await eventually('a sandbox ends at its timeout', async () => !(await short.isRunning()))
})

await part('lists', async () => {
	const all = await Promise.all(
		Array.from({ length: 5 }, (_, i) =>
			Sandbox.create({ ...base, metadata: { suite: 'list', 'odd key': `a&b=${i}` } })))
	const pages = Sandbox.list({ query: { metadata: { suite: 'list' } }, limit: 2 })
	const seen = []
	const sizes = []
	while (pages.hasNext) {
		const items = await pages.nextItems()
		sizes.push(items.length)
		seen.push(...items.map((i) => i.sandboxId))
	}
	is(sizes, [2, 2, 1], 'three pages of two')
	is(seen, all.map((s) => s.sandboxId).filter((id) => seen.includes(id)).sort((a, b) =>
		seen.indexOf(a) - seen.indexOf(b)), 'each sandbox once')
	is(new Set(seen).size, 5, 'and all of them')
	const odd = await Sandbox.list({ query: { metadata: { 'odd key': 'a&b=3' } } }).nextItems()
	is(odd.map((i) => i.sandboxId), [all[3].sandboxId], 'metadata of any characters is found')
	await all[0].pause()
	const paused = await Sandbox.list({
		query: { metadata: { suite: 'list' }, state: ['paused'] } }).nextItems()
	is(paused.map((i) => i.sandboxId), [all[0].sandboxId], 'by state')
	is(await Promise.all(all.map((s) => s.kill())), [true, true, true, true, true],
		'kill, also of a paused one')
})

const s = await Sandbox.create(base)

await part('commands', async () => {
	const r = await s.commands.run('id -un; id -u; pwd; echo oops >&2')
	is(r.stdout, 'user\n1001\n/home/user\n', 'a command is run for real, as `user`')
	is(r.stderr, 'oops\n', 'its errors come apart')
	is((await s.commands.run('id -un', { user: 'root' })).stdout, 'root\n', 'as root')
	is((await s.commands.run('pwd; echo $X', { cwd: '/tmp', envs: { X: 'a b' } })).stdout,
		'/tmp\na b\n', 'cwd and environment')
	const seven = await throws('CommandExitError', 'a command that fails', () =>
		s.commands.run('echo out; exit 7'))
	is([seven?.exitCode, seven?.stdout], [7, 'out\n'], 'with its exit code and output')
	await throws('CommandExitError', 'no such program', () => s.commands.run('no-such-program'))
	await throws('InvalidArgumentError', 'no such directory', () =>
		s.commands.run('true', { cwd: '/none' }))
	await throws('AuthenticationError', 'no such user', () =>
		s.commands.run('true', { user: 'nobody-at-all' }))
	let out = ''
	const streamed = await s.commands.run('for i in 1 2 3; do echo $i; done', {
		onStdout: (d) => { out += d } })
	is(out, streamed.stdout, 'output is streamed')
	const large = await s.commands.run('head -c 5000000 /dev/zero | tr "\\0" x')
	is(large.stdout.length, 5000000, 'large output')
	const timed = Date.now()
	await throws('TimeoutError', 'a command past its time', () =>
		s.commands.run('sleep 100', { timeoutMs: 700 }))
	ok(Date.now() - timed < 50000, 'ends then')
})

await part('background', async () => {
	const cat = await s.commands.run('cat; echo end', { background: true, stdin: true })
	ok((await s.commands.list()).some((p) => p.pid === cat.pid), 'list has it')
	await s.commands.sendStdin(cat.pid, 'one\n')
	await s.commands.sendStdin(cat.pid, 'two\n')
	await s.commands.closeStdin(cat.pid)
	is((await cat.wait()).stdout, 'one\ntwo\nend\n', 'input, and its end')
	const sleeper = await s.commands.run('sleep 1000', { background: true })
	is((await s.commands.run(`ps -o args= -p ${sleeper.pid} || true`)).stdout.includes('sleep'),
		true, 'its pid is the real one')
	is(await sleeper.kill(), true, 'kill')
	await throws('CommandExitError', 'what was killed did not succeed', () => sleeper.wait())
	is(await s.commands.kill(sleeper.pid), false, 'it is gone')
	const loop = await s.commands.run('read x; echo got $x; sleep 0.2; echo last', {
		background: true, stdin: true })
	await loop.disconnect()
	const same = await s.commands.connect(loop.pid)
	await s.commands.sendStdin(loop.pid, 'it\n')
	is((await same.wait()).stdout, 'got it\nlast\n', 'connect to a running one')
	await throws('NotFoundError', 'connect to none', () => s.commands.connect(4000000))
})

await part('files', async () => {
	const w = await s.files.write('dir/a.txt', hundredLines)
	is([w.path, w.name, w.type], ['/home/user/dir/a.txt', 'a.txt', 'file'], 'write')
	is(await s.files.read('dir/a.txt'), hundredLines, 'read')
	is((await s.commands.run('stat -c %U:%a dir/a.txt; wc -l <dir/a.txt')).stdout,
		'user:644\n100\n', 'it is really there, and the user\'s')
	await s.files.write([
		{ path: '/home/user/m1', data: 'one' }, { path: '/tmp/m2', data: 'two' }])
	is([await s.files.read('m1'), await s.files.read('/tmp/m2')], ['one', 'two'], 'two at once')
	await s.files.write('/root/r.txt', 'x', { user: 'root' })
	is((await s.files.getInfo('/root/r.txt')).owner, 'root', 'for root')
	is(await s.files.exists('dir/a.txt'), true, 'exists')
	is(await s.files.exists('dir/none'), false, 'does not exist')
	is(await s.files.makeDir('deep/er/dir'), true, 'makeDir')
	is(await s.files.makeDir('deep/er/dir'), false, 'makeDir of one that is there')
	is((await s.files.rename('dir/a.txt', 'deep/b.txt')).path, '/home/user/deep/b.txt', 'rename')
	await s.commands.run('ln -s b.txt deep/link; ln -s nowhere deep/broken; chmod 4755 deep/b.txt')
	const list = await s.files.list('deep', { depth: 2 })
	is(list.map((i) => [i.name, i.type]), [['b.txt', 'file'], ['er', 'dir'], ['dir', 'dir'],
		['link', 'file']], 'list, two deep')
	is(list[0].mode, 0o4755, 'mode')
	is(list.at(-1).symlinkTarget, '/home/user/deep/b.txt', 'a link has a target')
	await s.files.remove('deep')
	is(await s.files.exists('deep'), false, 'remove')
	await s.files.remove('deep')
	const missing = await throws('FileNotFoundError', 'read of none', () => s.files.read('none'))
	ok(/none/.test(missing?.message ?? ''), 'which is named')
	await throws('InvalidArgumentError', 'read of a directory', () => s.files.read('/tmp'))
	await s.files.write('empty', '')
	is(await s.files.read('empty'), '', 'an empty file')
	const odd = 'a b%2F+é.txt'
	await s.files.write(odd, 'odd')
	is(await s.files.read(odd), 'odd', 'a name of odd characters')
})

await part('50 MB both ways', async () => {
	const big = new Uint8Array(50 << 20)
	for (let i = 0; i < big.length; i += 4093) big[i] = i % 251
	for (const useOctetStream of [false, true]) {
		await s.files.write('big', new Blob([big]), { useOctetStream })
		const back = await s.files.read('big', { format: 'bytes' })
		is(Buffer.compare(Buffer.from(back), Buffer.from(big)), 0,
			useOctetStream ? 'as a stream of bytes' : 'as a form')
	}
	await s.files.write('big', new Blob([big]), { gzip: true })
	const back = await s.files.read('big', { format: 'bytes', gzip: true })
	is(Buffer.compare(Buffer.from(back), Buffer.from(big)), 0, 'compressed')
	is((await s.commands.run('sha256sum <big')).stdout.slice(0, 64),
		createHash('sha256').update(big).digest('hex'), 'which it is not in the sandbox')
	await s.files.remove('big')
})

await part('watch', async () => {
	await s.files.makeDir('watched/sub')
	const events = []
	const watch = await s.files.watchDir('watched', (e) => events.push(`${e.type} ${e.name}`), {
		recursive: true })
	await s.commands.run('cd watched; echo 1 >new; mv new newer; rm newer; echo 2 >sub/below')
	for (const want of ['create new', 'write new', 'rename new', 'create newer', 'remove newer',
		'create sub/below'])
		await eventually(`a watcher sees: ${want}`, () => events.includes(want))
	await watch.stop()
	await throws('FileNotFoundError', 'watch of none', () => s.files.watchDir('none', () => {}))
})

await part('terminals', async () => {
	let screen = ''
	const decoder = new TextDecoder()
	const pty = await s.pty.create({
		cols: 80, rows: 24, timeoutMs: 0, onData: (d) => { screen += decoder.decode(d) } })
	const type = (text) => s.pty.sendInput(pty.pid, new TextEncoder().encode(text))
	await type('stty size; tty; echo term=$TERM\r')
	await eventually('a terminal has its size', () => /24 80\r/.test(screen))
	await eventually('and is one', () => /\/dev\/pts\/\d/.test(screen))
	await eventually('of a type', () => /\bterm=xterm-256color/.test(screen))
	await s.pty.resize(pty.pid, { cols: 100, rows: 30 })
	await type('stty size\r')
	await eventually('resize', () => /30 100\r/.test(screen))
	await type('exit 3\r')
	const end = await throws('CommandExitError', 'the shell ends', () => pty.wait())
	is(end?.exitCode, 3, 'with its exit code')
	const other = await s.pty.create({ cols: 80, rows: 24, onData: () => {} })
	is(await s.pty.kill(other.pid), true, 'kill')
})

await part('pause', async () => {
	const counter = await s.commands.run(
		'while :; do n=$((n + 1)); echo $n >new; mv new count; sleep 0.01; done', { background: true })
	await eventually('a loop counts', async () => await s.files.exists('count'))
	counter.wait().catch(() => {})
	is(await s.pause(), true, 'pause')
	is(await s.pause(), false, 'pause again')
	is((await s.getInfo()).state, 'paused', 'it is paused')
	is(await s.isRunning(), false, 'and does not run')
	const back = await Sandbox.connect(s.sandboxId, { timeoutMs: 300000 })
	is(back.sandboxId, s.sandboxId, 'connect resumes it')
	const one = await back.files.read('count')
	await eventually('the loop goes on', async () => (await back.files.read('count')) !== one)
	ok((await back.commands.list()).some((p) => p.pid === counter.pid), 'by the same pid')
	await back.commands.kill(counter.pid)
})

await part('snapshots', async () => {
	await s.files.write('kept', 'in the snapshot')
	const snap = await s.createSnapshot({ name: 'state:one' })
	ok(snap.snapshotId.includes('state:one'), 'a snapshot has its name')
	const named = await s.listSnapshots().nextItems()
	ok(named.some((i) => i.snapshotId === snap.snapshotId), 'it is listed')
	const copy = await Sandbox.create(snap.snapshotId, base)
	is(await copy.files.read('kept'), 'in the snapshot', 'a sandbox boots from it')
	await copy.files.write('kept', 'otherwise')
	is(await s.files.read('kept'), 'in the snapshot', 'they share nothing')
	await copy.kill()
	is(await Sandbox.deleteSnapshot(snap.snapshotId), true, 'delete')
	await throws('SandboxError', 'boot from none', () => Sandbox.create(snap.snapshotId, base))
})

await part('processes in a snapshot', async () => {
	const source = await Sandbox.create({ ...base, envs: { TOKEN: 'of the source' } })
	const script = 'env >/tmp/env; echo $0 $1 >/tmp/args; exec sleep 1000'
	await source.commands.run(`exec sh -c '${script}' one 'two words'`, {
		background: true, envs: { MORE: 'x' }, cwd: '/srv' })
	await eventually('a process runs', async () => source.files.exists('/tmp/args'))
	const snap = await source.createSnapshot()
	await source.commands.run('rm /tmp/env /tmp/args')
	const copy = await Sandbox.create(snap.snapshotId, { ...base, envs: { TOKEN: 'of the copy' } })
	await eventually('it runs in what boots from it', async () => {
		const list = await copy.commands.list()
		return list.some((p) => p.cwd === '/srv') && (await copy.files.exists('/tmp/args'))
	})
	await eventually('with its arguments', async () =>
		(await copy.files.read('/tmp/args')) === 'one two words\n')
	const env = await copy.files.read('/tmp/env')
	ok(env.includes('TOKEN=of the source\n') && env.includes('MORE=x\n') &&
		env.includes(`E2B_SANDBOX_ID=${source.sandboxId}\n`), 'and the environment of the source')
	is((await copy.commands.run('echo $TOKEN')).stdout, 'of the copy\n', 'others have their own')
	is((await source.commands.list()).length, 1, 'the source goes on')
	await copy.kill()
	await source.kill()
	await Sandbox.deleteSnapshot(snap.snapshotId)
})

await part('apart', async () => {
	const other = await Sandbox.create(base)
	await other.files.write('/tmp/secret', 'x')
	is(await s.files.exists('/tmp/secret'), false, 'one sandbox sees no file of another')
	const sleeper = await other.commands.run('exec -a only-there sleep 1000', { background: true })
	is((await s.commands.run('ps ax')).stdout.includes('only-there'), false, 'nor a process')
	is((await other.commands.run('ps ax')).stdout.includes('only-there'), true, 'which is there')
	await sleeper.kill()
	await other.kill()
})

await part('secured URLs', async () => {
	const up = await s.uploadUrl('up.txt', { useSignatureExpiration: 60 })
	const form = new FormData()
	form.append('file', new Blob(['by url']), 'ignored')
	is((await fetch(up, { method: 'POST', body: form })).status, 200, 'a signed URL takes a file')
	const down = await s.downloadUrl('up.txt', { useSignatureExpiration: 60 })
	is(await (await fetch(down)).text(), 'by url', 'and gives it')
	is((await fetch(down.replace('up.txt', 'other'))).status, 401, 'for that path alone')
	const old = await s.downloadUrl('up.txt', { useSignatureExpiration: -5 })
	is((await fetch(old)).status, 401, 'for its time alone')
})

await part('network options', async () => {
	const closed = await Sandbox.create({ ...base, allowInternetAccess: false,
		network: { denyOut: ['0.0.0.0/0'], allowOut: ['1.1.1.1'] } })
	const info = await closed.getInfo()
	is(info.allowInternetAccess, false, 'no internet')
	is(info.network?.allowOut, ['1.1.1.1'], 'with exceptions')
	await closed.kill()
	await throws('SandboxError', 'nonsense is refused', () =>
		Sandbox.create({ ...base, network: { allowOut: ['example.com'] } }))
})

await s.kill()
done()
