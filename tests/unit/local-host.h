/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/local-host.h: the least host that the provider `local` can run under, so that
 * its own promises are tested without the program around it.
 *
 *	lh_setup();                     a session in the test's own directory
 *	lh_provision("a1");
 *	lh_sh("a1", NULL, "exit 7", &res);
 *
 * One call at a time; lh_fail_text() is why the last one failed.
 */
#ifndef ABX_LOCAL_HOST_H
#define ABX_LOCAL_HOST_H

#include "agentbox/cloud_backend.h"
#include "tests/unit/unit.h"

struct lh_result {
	int32_t r;
	struct abx_exit exit;
	struct abx_buf out, err;
};
#define LH_RESULT_INIT                                                     \
	{                                                                  \
		.out = ABX_BUF_INIT(1 << 20), .err = ABX_BUF_INIT(1 << 20) \
	}
void lh_result_release(struct lh_result *res);

/* Can this machine hold boxes?  NULL, or why not. */
const char *lh_unable(void);
/* For programs that are no tests: a session in `dir`; NULL, or why not. */
const char *lh_open(const char *dir);
const char *lh_url(void); /* what `url` gave last, or "" */
#define LH_MAIN(suite_fn)                                      \
	int main(void)                                         \
	{                                                      \
		const char *why = lh_unable();                 \
		SRunner *sr = srunner_create(suite_fn());      \
		int failed = 0;                                \
                                                               \
		srunner_set_tap(sr, "-");                      \
		if (why)                                       \
			(void)printf("1..0 # SKIP %s\n", why); \
		else                                           \
			srunner_run_all(sr, CK_SILENT);        \
		failed = srunner_ntests_failed(sr);            \
		srunner_free(sr);                              \
		return failed ? 1 : 0;                         \
	}

/* A checked fixture: the session, and all its boxes and files gone at the end. */
void lh_setup(void);
void lh_teardown(void);

extern const struct abx_cloud_backend *lh_backend;
extern struct abx_session *lh_session;
extern struct abx_call *lh_call;

/* The call's cancel descriptor becomes readable, or its deadline passes, in so many ms. */
void lh_cancel_in(unsigned int ms);
void lh_cancel_clear(void);
void lh_deadline_in(int64_t ms);

int32_t lh_provision(const char *id);
/* The same, with whatever else `p` says. */
int32_t lh_provision_with(const char *id, const struct abx_provision *p);
int32_t lh_stop(const char *id);
int32_t lh_start(const char *id, uint32_t flags);
int32_t lh_provision_from(const char *id, const char *snapshot);
/* The state that was emitted last, by whichever operation. */
uint32_t lh_told(void);
int32_t lh_destroy(const char *id);
/* The state that `get` emits; its error code instead when it fails. */
int32_t lh_state(const char *id);
/* How many boxes `list` emits for the label agentbox.box=LABEL (NULL: all). */
int lh_count(const char *label);
/* Rows emitted since the last clear: the value of `key` in the first row of that kind whose
 * `key` is `value`, if given.  NULL: there is none. */
void lh_rows_clear(void);
const char *lh_row(const char *kind, const char *key, const char *value);
/* ref: "" when it fails. */
int32_t lh_snapshot(const char *id, uint32_t flags, char ref[64]);
int lh_count_snapshots(const char *label);
void lh_exec(const char *id, struct abx_exec *x, struct lh_result *res);
/* sh -c SCRIPT as USER (NULL: the box user), no input. */
void lh_sh(const char *id, const char *user, const char *script, struct lh_result *res);
/* Its output, which must be all it says; the command must succeed. */
void lh_expect(const char *id, const char *user, const char *script, const char *output);
const char *lh_fail_text(void);
/* What was logged last, and the resources and images that were emitted since lh_emitted_clear():
 * "name state label=value...\n" each. */
const char *lh_log_text(void);
const char *lh_emitted(void);
void lh_emitted_clear(void);

#endif
