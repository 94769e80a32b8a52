// SPDX-License-Identifier: MIT
// Points of a test that speaks TAP.
import { isDeepStrictEqual } from 'node:util'

let n = 0
let failed = 0

function point(good, what, why) {
	n++
	if (!good) failed++
	console.log(`${good ? 'ok' : 'not ok'} ${n} - ${what.replaceAll('#', ' ')}`)
	if (!good && why !== undefined)
		for (const line of String(why).split('\n')) console.log(`# ${line}`)
}

export function ok(value, what) {
	point(Boolean(value), what, 'it is not so')
}

export function is(got, want, what) {
	const show = (v) => JSON.stringify(v)?.slice(0, 2000)
	point(isDeepStrictEqual(got, want), what, `got  ${show(got)}\nwant ${show(want)}`)
}

// The error of that name, or null.
export async function throws(name, what, fn) {
	try {
		await fn()
	} catch (e) {
		point(e.name === name, what, `${e.name}: ${e.message}`)
		return e
	}
	point(false, what, 'nothing was thrown')
	return null
}

// Until it is true; the point fails after 30 seconds.
export async function eventually(what, fn) {
	const end = Date.now() + 30000
	while (Date.now() < end) {
		if (await fn()) return point(true, what)
		await new Promise((done) => setTimeout(done, 25))
	}
	point(false, what, 'it did not come')
}

// One part of a test: what it throws is a point that failed.
export async function part(what, fn) {
	try {
		await fn()
	} catch (e) {
		point(false, what, e.stack ?? e)
	}
}

export function done() {
	console.log(`1..${n}`)
	process.exit(failed ? 1 : 0)
}
