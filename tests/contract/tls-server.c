/* SPDX-License-Identifier: MIT */
/*
 * tls-server DIR: a web server whose certificate is of an authority that it makes itself, as
 * that of a proxy that looks into TLS.  DIR/ca.pem is the authority, DIR/port where it listens,
 * on all addresses.  It answers every request, and the first one of a git that clones.
 */
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define YEAR_S (365L * 86400)

static void must(int ok, const char *what)
{
	if (ok)
		return;
	(void)fprintf(stderr, "tls-server: %s\n", what);
	ERR_print_errors_fp(stderr);
	exit(1);
}

static void extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *ext;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	must(ext && X509_add_ext(cert, ext, -1), value);
	X509_EXTENSION_free(ext);
}

static X509 *certify(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *issuer_key)
{
	X509 *cert = X509_new();
	X509_NAME *subject;

	must(cert && X509_set_version(cert, 2), "certificate");
	(void)ASN1_INTEGER_set(X509_get_serialNumber(cert), issuer ? 2 : 1);
	(void)X509_gmtime_adj(X509_getm_notBefore(cert), -86400);
	(void)X509_gmtime_adj(X509_getm_notAfter(cert), YEAR_S);
	(void)X509_set_pubkey(cert, key);
	subject = X509_get_subject_name(cert);
	(void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name,
					 -1, -1, 0);
	(void)X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert));
	if (issuer) {
		extend(cert, issuer, NID_subject_alt_name,
		       "DNS:localhost,IP:127.0.0.1,IP:172.17.0.1");
		extend(cert, issuer, NID_ext_key_usage, "serverAuth");
	} else {
		extend(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
		extend(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign");
	}
	must(X509_sign(cert, issuer_key, EVP_sha256()), "sign");
	return cert;
}

static FILE *create(const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	must(f != NULL, path);
	return f;
}

static int listen_anywhere(const char *dir)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *f;

	must(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 16) == 0 &&
		     getsockname(fd, (struct sockaddr *)&a, &len) == 0,
	     "listen");
	f = create(dir, "port");
	(void)fprintf(f, "%d\n", ntohs(a.sin_port));
	must(fclose(f) == 0, "write");
	return fd;
}

static void answer(SSL *ssl)
{
	static const char refs[] = "0123456789012345678901234567890123456789\trefs/heads/main\n";
	char head[8192], out[512];
	const char *body = "hello\n";
	size_t n = 0;

	while (n + 1 < sizeof(head)) {
		int got = SSL_read(ssl, head + n, (int)(sizeof(head) - 1 - n));

		if (got <= 0)
			return;
		n += (size_t)got;
		head[n] = '\0';
		if (strstr(head, "\r\n\r\n"))
			break;
	}
	if (strstr(head, "/info/refs"))
		body = refs;
	else if (strstr(head, "/HEAD "))
		body = "ref: refs/heads/main\n";
	(void)snprintf(out, sizeof(out),
		       "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		       "Connection: close\r\n\r\n%s",
		       strlen(body), body);
	(void)SSL_write(ssl, out, (int)strlen(out));
	(void)SSL_shutdown(ssl);
}

int main(int argc, char **argv)
{
	EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	X509 *ca;
	FILE *f;
	int fd;

	must(argc == 2 && ca_key && key && ctx, "usage: tls-server DIR");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	ca = certify(ca_key, "A private authority", NULL, ca_key);
	f = create(argv[1], "ca.pem");
	must(PEM_write_X509(f, ca) && fclose(f) == 0, "write");
	must(SSL_CTX_use_certificate(ctx, certify(key, "localhost", ca, ca_key)) &&
		     SSL_CTX_use_PrivateKey(ctx, key),
	     "key");
	fd = listen_anywhere(argv[1]);
	for (;;) {
		int c = accept(fd, NULL, NULL);
		SSL *ssl = SSL_new(ctx);

		must(c >= 0 && ssl, "accept");
		(void)SSL_set_fd(ssl, c);
		if (SSL_accept(ssl) == 1)
			answer(ssl);
		SSL_free(ssl);
		(void)close(c);
	}
}
