/* SPDX-License-Identifier: MIT */
/* What is wrong between two ends of TLS, in words, and which file or address mends it. */
#include <string.h>
#include <unistd.h>

#include "providers/docker/docker.h"

enum side {
	ENGINE_UNKNOWN,
	ENGINE_NAME,
	ENGINE_TIME,
	ENGINE_PLAIN,
	OURS_REFUSED,
	OURS_BROKEN,
	OTHER,
};

/* libcurl says it in the words of the library below it; these are OpenSSL's and GnuTLS's. */
static enum side side_of(const char *text)
{
	static const struct {
		const char *words;
		enum side side;
	} table[] = {
		{"wrong version number", ENGINE_PLAIN},
		{"unexpected TLS packet", ENGINE_PLAIN},
		{"lert", OURS_REFUSED},
		{"subject name", ENGINE_NAME},
		{"does not match", ENGINE_NAME},
		{"expired", ENGINE_TIME},
		{"not yet valid", ENGINE_TIME},
		{"private key", OURS_BROKEN},
		{"client certificate", OURS_BROKEN},
		{"certificate file", OURS_BROKEN},
		{"local issuer", ENGINE_UNKNOWN},
		{"self", ENGINE_UNKNOWN},
		{"verif", ENGINE_UNKNOWN},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(table); i++)
		if (strstr(text, table[i].words))
			return table[i].side;
	return OTHER;
}

static bool has(const struct docker_endpoint *e, const char *name)
{
	char path[sizeof(e->tls_dir) + 16];

	(void)snprintf(path, sizeof(path), "%s/%s", e->tls_dir, name);
	return *e->tls_dir && access(path, R_OK) == 0;
}

static int32_t fail_unknown(struct abx_session *s, struct abx_call *call,
			    const struct docker_endpoint *e)
{
	char remedy[1200];

	(void)snprintf(remedy, sizeof(remedy),
		       "put the certificate of its authority into %.1000s/ca.pem",
		       *e->tls_dir ? e->tls_dir : "(docker.cert_path)");
	return abx_fail(call, ABX_EAUTH, remedy,
			"Docker engine at %s: its certificate is of none of the authorities that "
			"%s",
			s->where, has(e, "ca.pem") ? "ca.pem names" : "this machine knows");
}

static int32_t fail_ours(struct abx_session *s, struct abx_call *call,
			 const struct docker_endpoint *e, enum side side)
{
	const char *dir = *e->tls_dir ? e->tls_dir : "(docker.cert_path)";
	char remedy[1200];

	if (side == OURS_BROKEN) {
		(void)snprintf(remedy, sizeof(remedy),
			       "put both into %.1000s; they are made together", dir);
		return abx_fail(
			call, ABX_EAUTH, remedy,
			"Docker engine at %s: cert.pem and key.pem: one is missing, or they "
			"do not belong together",
			s->where);
	}
	if (!has(e, "cert.pem")) {
		(void)snprintf(remedy, sizeof(remedy),
			       "put cert.pem and key.pem, made by the engine's authority, into "
			       "%.1000s",
			       dir);
		return abx_fail(call, ABX_EAUTH, remedy,
				"Docker engine at %s: it wants a certificate, and there is no "
				"cert.pem",
				s->where);
	}
	(void)snprintf(remedy, sizeof(remedy),
		       "it must be of the engine's authority, and in time: openssl x509 -noout "
		       "-issuer -enddate -in %.1000s/cert.pem",
		       dir);
	return abx_fail(call, ABX_EAUTH, remedy, "Docker engine at %s: it refuses our certificate",
			s->where);
}

int32_t docker_tls_fail(struct abx_session *s, struct abx_call *call,
			const struct docker_endpoint *e, int32_t code, const char *text)
{
	const enum side side = side_of(text);

	switch (side) {
	case ENGINE_UNKNOWN:
		return fail_unknown(s, call, e);
	case OURS_REFUSED:
	case OURS_BROKEN:
		return fail_ours(s, call, e, side);
	case ENGINE_NAME:
		return abx_fail(call, ABX_EAUTH,
				"in DOCKER_HOST, use a name or address that is in the certificate",
				"Docker engine at %s: its certificate is for another name",
				s->where);
	case ENGINE_TIME:
		return abx_fail(call, ABX_EAUTH,
				"renew the engine's certificate, or set this machine's clock",
				"Docker engine at %s: its certificate is out of date", s->where);
	case ENGINE_PLAIN:
		return abx_fail(call, ABX_EAUTH, "use its port for TLS",
				"Docker engine at %s: what answers there does not speak TLS",
				s->where);
	case OTHER:
		break;
	}
	return abx_fail(call, code, DOCKER_REMEDY_LOST, "Docker engine at %s: %s", s->where, text);
}
