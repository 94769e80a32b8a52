/* SPDX-License-Identifier: MIT */
/*
 * tests/cloud/e2b/template.h: templates of the emulated E2B, which snapshots are too.
 *
 * A template has builds, and tags that name one of them each; what boots is NAME, NAME:TAG or
 * ID:TAG, with "team/" in front or not.  All of it is behind e->lock.  A template whose build is
 * under way is used through a reference; `gone` says that it was deleted meanwhile.
 */
#ifndef CLOUD_E2B_TEMPLATE_H
#define CLOUD_E2B_TEMPLATE_H

#include "tests/cloud/e2b/e2b.h"

#define E2B_NAME_BYTES 64

enum e2b_build_state { BUILD_WAITING, BUILD_BUILDING, BUILD_READY, BUILD_ERROR };

struct e2b_build {
	struct e2b_build *next; /* newest first */
	struct e2b_template *of;
	char id[40]; /* a UUID */
	enum e2b_build_state state;
	char box_id[24]; /* whose snapshot it is; "": it was built */
	int64_t made_ms, changed_ms;
	struct e2b_boot boot;
	cJSON *request, *log, *reason;
};

struct e2b_tag {
	struct e2b_tag *next; /* newest first */
	char name[E2B_NAME_BYTES];
	struct e2b_build *build;
	int64_t made_ms;
};

struct e2b_template {
	struct e2b_template *next; /* newest first */
	struct e2b *e;
	int refs;
	bool gone, public;
	char id[24], name[E2B_NAME_BYTES]; /* name "": a snapshot without one */
	int64_t made_ms, spawned_ms;
	unsigned int spawned;
	struct e2b_build *builds;
	struct e2b_tag *tags;
};

/* templates.c.  The caller has the lock, unless it says otherwise. */
bool e2b_split_name(const char *text, char name[E2B_NAME_BYTES], char tag[E2B_NAME_BYTES]);
bool e2b_is_tag(const char *text);
/* By NAME or ID; what is behind a colon does not matter.  NULL: none. */
struct e2b_template *e2b_template_find(struct e2b *e, const char *text);
/* The one of that name, or a new one in the list; name "": always new. */
struct e2b_template *e2b_template_named(struct e2b *e, const char *name);
struct e2b_build *e2b_build_new(struct e2b_template *t);
struct e2b_build *e2b_build_find(struct e2b_template *t, const char *id);
struct e2b_tag *e2b_tag_find(struct e2b_template *t, const char *name);
void e2b_tag_set(struct e2b_template *t, const char *name, struct e2b_build *b);
/* Takes it off the list and drops the list's reference, without the lock. */
void e2b_template_end(struct e2b_template *t);
/* Without the lock. */
void e2b_template_put(struct e2b_template *t);
/* Snapshots of builds that no tag names are removed; without the lock. */
void e2b_builds_trim(struct e2b_template *t);
const char *e2b_build_state_text(const struct e2b_build *b);
/* ["team/NAME"], or NAME alone; [] without a name. */
cJSON *e2b_template_names(const struct e2b_template *t, bool with_team);
/* The template that args[0] names, the lock taken; NULL: 404 is the answer, without the lock. */
struct e2b_template *e2b_named_template(struct emu_request *req);

/* build-run.c: a thread; takes over a reference to the build's template. */
void *e2b_build_run(void *build);

#endif
