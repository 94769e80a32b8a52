// SPDX-License-Identifier: MIT
// What listens in a sandbox of the emulated E2B, through the proxy in front of it.
import http from 'node:http'
import { Sandbox } from 'e2b'
import { done, eventually, is, ok, part } from './tap.mjs'

const emulator = new URL(process.env.EMULATOR)

// One request to the host that the SDK names; names below localhost need not be known here.
const ask = (host, path, options = {}, body) => new Promise((resolve, reject) => {
	const req = http.request({ host: emulator.hostname, port: emulator.port, path, ...options,
		headers: { Host: host, ...options.headers } })
	req.on('error', reject)
	req.on('upgrade', (res, socket) => resolve({ res, socket }))
	req.on('response', async (res) => {
		const parts = []
		for await (const p of res) parts.push(p)
		resolve({ status: res.statusCode, headers: res.headers,
			body: Buffer.concat(parts).toString() })
	})
	req.end(body)
})

// Says what it was asked; /ws echoes in capitals, behind a handshake.
const server = `
import hashlib, http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def body(self):
        if self.headers.get('Transfer-Encoding') == 'chunked':
            all = b''
            while True:
                n = int(self.rfile.readline(), 16)
                all += self.rfile.read(n)
                self.rfile.readline()
                if n == 0: return all
        return self.rfile.read(int(self.headers.get('Content-Length') or 0))
    def do_POST(self):
        data = self.body()
        text = f"{self.command} {self.path} {self.headers['Host']} {len(data)} {hashlib.sha256(data).hexdigest()}".encode()
        self.send_response(201)
        self.send_header('X-Own', 'yes')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for i in range(0, len(text), 7):
            part = text[i:i + 7]
            self.wfile.write(b'%x\\r\\n%s\\r\\n' % (len(part), part))
        self.wfile.write(b'0\\r\\n\\r\\n')
    def do_GET(self):
        if self.path == '/ws':
            self.wfile.write(b'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: x\\r\\n\\r\\nhello')
            while True:
                d = self.rfile.read1(1000)
                if not d: break
                self.wfile.write(d.upper())
            self.close_connection = True
            return
        n = int(self.path[1:])
        self.send_response(200)
        self.send_header('Content-Length', str(n))
        self.end_headers()
        self.wfile.write(b'x' * n)
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()
`
const serve = async (s, port) => {
	await s.files.write('/tmp/server.py', server)
	await s.commands.run(`python3 /tmp/server.py ${port}`, { background: true })
	await eventually('a service listens', async () => (await ask(s.getHost(port), '/1')).status !== 502)
}

await part('ports', async () => {
	const s = await Sandbox.create({ timeoutMs: 300000 })
	const host = s.getHost(3000)
	is(host, `3000-${s.sandboxId}.${emulator.host}`, 'the SDK names a host')
	const closed = await ask(host, '/')
	is([closed.status, JSON.parse(closed.body)], [502, { sandboxId: s.sandboxId,
		message: 'The sandbox is running but port is not open', port: 3000, code: 502 }],
	'nothing listens')
	await serve(s, 3000)
	const sum = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
	const said = await ask(host, '/a%2Fb?c=d', { method: 'POST' })
	is([said.status, said.headers['x-own'], said.body],
		[201, 'yes', `POST /a%2Fb?c=d ${host} 0 ${sum}`], 'a request, as it was sent')
	const big = Buffer.alloc(5 << 20, 7)
	ok((await ask(host, '/', { method: 'POST' }, big)).body.includes(` ${big.length} `),
		'a large body')
	ok((await ask(host, '/', { method: 'POST', headers: { 'Transfer-Encoding': 'chunked' } }, big))
		.body.includes(` ${big.length} `), 'in chunks')
	is((await ask(host, '/5000000')).body.length, 5000000, 'a large answer')
	is((await ask(emulator.host, '/7', { headers: { 'E2b-Sandbox-Id': s.sandboxId,
		'E2b-Sandbox-Port': '3000' } })).body.length, 7, 'by headers')
	const { res, socket } = await ask(host, '/ws', { headers: { Connection: 'Upgrade',
		Upgrade: 'websocket', 'Sec-WebSocket-Key': 'x' } })
	is([res.statusCode, res.headers.upgrade], [101, 'websocket'], 'a websocket')
	let got = ''
	socket.on('data', (d) => { got += d })
	await eventually('what it says first', () => got === 'hello')
	socket.write('abc')
	await eventually('and both ways', () => got === 'helloABC')
	await s.kill()
	await eventually('which ends with the sandbox', () => socket.destroyed)
	is((await ask(host, '/')).status, 502, 'none of a sandbox that is gone')
})

await part('private ports', async () => {
	const s = await Sandbox.create({ timeoutMs: 300000, network: { allowPublicTraffic: false,
		maskRequestHost: 'localhost:${PORT}' } })
	const host = s.getHost(3000)
	is((await ask(host, '/')).status, 403, 'are closed')
	is((await ask(host, '/', { headers: { 'e2b-traffic-access-token': 'x' } })).status, 403,
		'to a wrong token')
	const headers = { 'e2b-traffic-access-token': s.trafficAccessToken }
	is((await ask(host, '/', { headers })).status, 502, 'not to the token')
	await s.files.write('/tmp/server.py', server)
	await s.commands.run('python3 /tmp/server.py 3000', { background: true })
	await eventually('a service listens', async () =>
		(await ask(host, '/1', { headers })).status === 200)
	ok((await ask(host, '/', { method: 'POST', headers })).body.includes(' localhost:3000 '),
		'which sees the host that is wished')
	await s.kill()
})

await part('a paused one', async () => {
	const s = await Sandbox.create({ timeoutMs: 300000,
		lifecycle: { onTimeout: 'pause', autoResume: true } })
	await serve(s, 3000)
	await s.pause()
	is((await ask(s.getHost(3000), '/3')).body, 'xxx', 'is woken by what asks its port')
	is((await s.getInfo()).state, 'running', 'and runs')
	await s.kill()
	const other = await Sandbox.create({ timeoutMs: 300000 })
	await other.pause()
	is((await ask(other.getHost(3000), '/3')).status, 502, 'unless it is not to')
	is((await other.getInfo()).state, 'paused', 'and stays paused')
	await other.kill()
})

done()
