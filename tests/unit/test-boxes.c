/* SPDX-License-Identifier: MIT */
/* Records of boxes: names, indices, ids, states. */
#include "core/state/boxes.h"

#include "core/state/journal.h"
#include "core/state/names.h"
#include "core/util/parse.h"
#include "tests/unit/unit.h"

#define MANY 50

static struct abx_db *db;

static void setup(void)
{
	unit_home_setup();
	unit_ok(abx_db_open(unit_home(), &db, &unit_err));
}

static void teardown(void)
{
	abx_db_close(db);
	unit_dir_teardown();
}

static int reserve_in(const char *project, const char *name, struct abx_box *ret,
		      struct abx_err *err)
{
	const struct abx_reserve in = {
		.name = name, .project_path = project, .workspace = project, .provider = "local"};

	memset(ret, 0, sizeof(*ret));
	return abx_boxes_reserve(db, &in, ret, err);
}

static uint32_t index_of_new(const char *project, const char *name)
{
	struct abx_box b;
	uint32_t index;

	unit_ok(reserve_in(project, name, &b, &unit_err));
	index = b.index;
	abx_box_release(&b);
	return index;
}

static void delete_named(const char *name)
{
	struct abx_box_list l = {0};

	unit_ok(abx_boxes_list(db, NULL, &l, &unit_err));
	for (size_t i = 0; i < l.len; i++)
		if (strcmp(l.items[i].name, name) == 0)
			unit_ok(abx_boxes_delete(db, l.items[i].id, &unit_err));
	abx_box_list_release(&l);
}

START_TEST(reserved_record)
{
	struct abx_journal_rows rows = {0};
	struct abx_box b, again = {0};

	unit_ok(reserve_in("/srv/My Project", NULL, &b, &unit_err));
	unit_ok(abx_boxes_load(db, b.id, &again, &unit_err));
	ck_assert_uint_eq(strlen(again.id), 16);
	ck_assert_str_eq(again.name, b.name);
	ck_assert_int_eq(abx_check_box_name(b.name, NULL), 0);
	ck_assert_uint_eq(again.index, 1);
	ck_assert_str_eq(again.workspace, "/srv/My Project");
	ck_assert_str_eq(again.provider, "local");
	ck_assert_str_eq(again.pending, "create");
	ck_assert_int_eq(again.state, ABX_BOX_CREATING);
	ck_assert_uint_ge(strlen(again.attempt), 16);
	ck_assert_ptr_null(again.sandbox_id);
	ck_assert_int_eq(again.created_at_ms, b.created_at_ms);
	unit_ok(abx_journal_list(db, b.id, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 1);
	ck_assert_str_eq(rows.items[0].op, "create");
	ck_assert_str_eq(rows.items[0].step, "reserve");
	abx_journal_rows_release(&rows);
	abx_box_release(&again);
	abx_box_release(&b);
}
END_TEST

START_TEST(lowest_free_index_of_the_project)
{
	ck_assert_uint_eq(index_of_new("/p", "one"), 1);
	ck_assert_uint_eq(index_of_new("/p", "two"), 2);
	ck_assert_uint_eq(index_of_new("/q", "other"), 1);
	ck_assert_uint_eq(index_of_new("/p", "three"), 3);
	delete_named("two");
	ck_assert_uint_eq(index_of_new("/p", "four"), 2);
	delete_named("one");
	ck_assert_uint_eq(index_of_new("/p", "five"), 1);
	ck_assert_uint_eq(index_of_new("/p", "six"), 4);
}
END_TEST

START_TEST(taken_name_says_by_whom)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_box b, second;

	unit_ok(reserve_in("/p", "mine", &b, &unit_err));
	ck_assert_int_eq(reserve_in("/q", "mine", &second, &err), ABX_EEXIST);
	unit_has(err.text, "mine");
	unit_has(err.text, b.id);
	unit_has(err.text, "/p");
	unit_has(err.text, "creating");
	unit_has(err.remedy, "agentbox destroy mine");
	ck_assert_ptr_null(second.id);
	/* Nothing is left of the attempt: /q has no project and no index taken. */
	delete_named("mine");
	ck_assert_uint_eq(index_of_new("/q", "mine"), 1);
	abx_box_release(&b);
}
END_TEST

START_TEST(unusable_names)
{
	static const char *const names[] = {"",	   "-a",       "a-",  "A",   "a b",
					    "a/b", "..",       "a.b", "'a'", "a\nb",
					    "12",  "\xc3\xa9", "a_b", "0",   "*"};
	char longest[301];
	struct abx_box b;

	for (size_t i = 0; i < ABX_N_ELEMENTS(names); i++)
		ck_assert_int_eq(reserve_in("/p", names[i], &b, NULL), ABX_EUSAGE);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[300] = '\0';
	ck_assert_int_eq(reserve_in("/p", longest, &b, NULL), ABX_EUSAGE);
	longest[64] = '\0';
	ck_assert_int_eq(reserve_in("/p", longest, &b, NULL), ABX_EUSAGE);
	longest[63] = '\0';
	ck_assert_uint_eq(index_of_new("/p", longest), 1);
}
END_TEST

/* A name wins over the beginning of an id, so only a whole id is out of reach for one. */
START_TEST(name_that_is_an_id)
{
	struct abx_err err = ABX_ERR_INIT;
	const struct abx_reserve in = {.id = "abcdef0123456789",
				       .name = "one",
				       .project_path = "/p",
				       .workspace = "/p",
				       .provider = "local"};
	struct abx_box b = {0}, second;

	unit_ok(abx_boxes_reserve(db, &in, &b, &unit_err));
	ck_assert_str_eq(b.id, "abcdef0123456789");
	ck_assert_int_eq(reserve_in("/p", "abcdef0123456789", &second, &err), ABX_EEXIST);
	unit_has(err.text, b.id);
	abx_box_release(&b);
	ck_assert_uint_eq(index_of_new("/p", "abcdef"), 2);
}
END_TEST

START_TEST(ids_that_are_none)
{
	static const char *const ids[] = {"",
					  "abc",
					  "abcdef012345678g",
					  "../../../../../x",
					  "ABCDEF0123456789",
					  "abcdef01234567890"};
	struct abx_box b = {0};

	for (size_t i = 0; i < ABX_N_ELEMENTS(ids); i++) {
		const struct abx_reserve in = {
			.id = ids[i], .project_path = "/p", .workspace = "/p", .provider = "local"};

		ck_assert_int_eq(abx_boxes_reserve(db, &in, &b, NULL), ABX_EINVAL);
	}
}
END_TEST

START_TEST(id_twice)
{
	const struct abx_reserve in = {.id = "abcdef0123456789",
				       .project_path = "/p",
				       .workspace = "/p",
				       .provider = "local"};
	struct abx_box b = {0}, second = {0};
	struct abx_err err = ABX_ERR_INIT;

	unit_ok(abx_boxes_reserve(db, &in, &b, &unit_err));
	ck_assert_int_eq(abx_boxes_reserve(db, &in, &second, &err), ABX_EEXIST);
	unit_has(err.text, "abcdef0123456789");
	abx_box_release(&b);
}
END_TEST

START_TEST(new_ids_are_never_numbers)
{
	char id[17];

	/* One of about 1,800 sixteen-digit draws has no letter. */
	for (int i = 0; i < 20000; i++) {
		abx_box_new_id(id);
		ck_assert_uint_eq(strspn(id, "0123456789abcdef"), 16);
		ck_assert_uint_lt(strspn(id, "0123456789"), 16);
	}
}
END_TEST

START_TEST(update_and_load)
{
	struct abx_box b, again = {0};
	char id[17];

	unit_ok(reserve_in("/p", "one", &b, &unit_err));
	abx_xreplace(&b.sandbox_id, "sb-1");
	abx_xreplace(&b.account, "me@example.com");
	abx_xreplace(&b.provider_data, "{\"x\": \"'\"}");
	abx_xreplace(&b.branch, "agentbox/one");
	abx_xreplace(&b.base_commit, "0123");
	abx_xreplace(&b.seed_tree, "4567");
	abx_xreplace(&b.checkpoint, "cp");
	abx_xreplace(&b.error, "it's broken");
	abx_xreplace(&b.pending, NULL);
	b.state = ABX_BOX_FAILED;
	b.expires_at_ms = INT64_C(1790000000123);
	unit_ok(abx_boxes_update(db, &b, &unit_err));
	unit_ok(abx_boxes_load(db, b.id, &again, &unit_err));
	ck_assert_str_eq(again.sandbox_id, "sb-1");
	ck_assert_str_eq(again.account, "me@example.com");
	ck_assert_str_eq(again.provider_data, "{\"x\": \"'\"}");
	ck_assert_str_eq(again.branch, "agentbox/one");
	ck_assert_str_eq(again.base_commit, "0123");
	ck_assert_str_eq(again.seed_tree, "4567");
	ck_assert_str_eq(again.checkpoint, "cp");
	ck_assert_str_eq(again.error, "it's broken");
	ck_assert_ptr_null(again.pending);
	ck_assert_int_eq(again.state, ABX_BOX_FAILED);
	ck_assert_int_eq(again.expires_at_ms, INT64_C(1790000000123));
	abx_box_release(&again);
	unit_ok(abx_boxes_delete(db, b.id, &unit_err));
	ck_assert_int_eq(abx_boxes_load(db, b.id, &again, NULL), ABX_ENOBOX);
	ck_assert_int_eq(abx_boxes_update(db, &b, NULL), ABX_ENOBOX);
	ck_assert_int_eq(abx_boxes_delete(db, b.id, NULL), ABX_ENOBOX);
	abx_box_new_id(id);
	ck_assert_int_eq(abx_boxes_load(db, id, &again, NULL), ABX_ENOBOX);
	abx_box_release(&b);
}
END_TEST

START_TEST(what_a_provider_says)
{
	struct abx_sandbox s = {ABX_INIT(struct abx_sandbox),
				.state = ABX_STATE_RUNNING,
				.id = "sb",
				.provider_data = "data",
				.account = "me",
				.expires_at_ms = 5};
	const struct abx_sandbox bare = {ABX_INIT(struct abx_sandbox), .state = ABX_STATE_PAUSED,
					 .id = "sb"};
	const struct abx_sandbox vague = {ABX_INIT(struct abx_sandbox)};
	struct abx_box b, now = {0};

	unit_ok(reserve_in("/p", "one", &b, &unit_err));
	unit_ok(abx_boxes_set_sandbox(db, b.id, &s, &unit_err));
	unit_ok(abx_boxes_load(db, b.id, &now, &unit_err));
	ck_assert_str_eq(now.sandbox_id, "sb");
	ck_assert_str_eq(now.provider_data, "data");
	ck_assert_int_eq(now.expires_at_ms, 5);
	ck_assert_int_eq(now.state, ABX_BOX_CREATING);
	abx_xreplace(&now.pending, NULL);
	now.state = ABX_BOX_RUNNING;
	unit_ok(abx_boxes_update(db, &now, &unit_err));
	abx_box_release(&now);
	unit_ok(abx_boxes_set_sandbox(db, b.id, &bare, &unit_err));
	unit_ok(abx_boxes_set_sandbox(db, b.id, &vague, &unit_err));
	unit_ok(abx_boxes_load(db, b.id, &now, &unit_err));
	ck_assert_int_eq(now.state, ABX_BOX_PAUSED);
	ck_assert_str_eq(now.sandbox_id, "sb");
	ck_assert_str_eq(now.provider_data, "data");
	ck_assert_str_eq(now.account, "me");
	ck_assert_int_eq(now.expires_at_ms, 0);
	abx_box_release(&now);
	ck_assert_int_eq(abx_boxes_set_sandbox(db, "0000000000000000", &s, NULL), ABX_ENOBOX);
	abx_box_release(&b);
}
END_TEST

START_TEST(delete_takes_all_of_it)
{
	const struct abx_resource res = {ABX_INIT(struct abx_resource), .kind = "key", .name = "k"};
	struct abx_resource_rows rows = {0};
	sqlite3_stmt *stmt = NULL;
	struct abx_box b;

	unit_ok(reserve_in("/p", "one", &b, &unit_err));
	unit_ok(abx_resources_note(db, "local", b.id, &res, ABX_PHASE_INTENT, &unit_err));
	unit_ok(abx_boxes_delete(db, b.id, &unit_err));
	unit_ok(abx_resources_list(db, NULL, NULL, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 0);
	unit_ok(abx_db_query(
		db, &stmt, &unit_err,
		"SELECT (SELECT count(*) FROM journal) + (SELECT count(*) FROM projects)", ""));
	ck_assert_int_eq(abx_db_step(db, stmt, NULL), 1);
	ck_assert_int_eq(sqlite3_column_int(stmt, 0), 0);
	(void)sqlite3_finalize(stmt);
	abx_resource_rows_release(&rows);
	abx_box_release(&b);
}
END_TEST

START_TEST(list_of_project_and_install)
{
	struct abx_box_list l = {0};
	abx_autofree char *key = abx_project_key("/p");

	(void)index_of_new("/p", "p-one");
	(void)index_of_new("/q", "q-one");
	(void)index_of_new("/p", "p-two");
	unit_ok(abx_boxes_list(db, key, &l, &unit_err));
	ck_assert_uint_eq(l.len, 2);
	ck_assert_str_eq(l.items[0].name, "p-one");
	ck_assert_str_eq(l.items[1].name, "p-two");
	abx_box_list_release(&l);
	unit_ok(abx_boxes_list(db, NULL, &l, &unit_err));
	ck_assert_uint_eq(l.len, 3);
	abx_box_list_release(&l);
	unit_ok(abx_boxes_list(db, "none", &l, &unit_err));
	ck_assert_uint_eq(l.len, 0);
}
END_TEST

START_TEST(project_keys)
{
	static const struct {
		const char *path, *start;
	} cases[] = {
		{"/srv/app", "app-"},
		{"/srv/My App!", "my-app-"},
		{"/", "project-"},
		{"/x/...", "project-"},
		{"/x/\xc3\xa9t\xc3\xa9", "t-"},
		{"/x/--a--b--", "a-b-"},
		{"/x/"
		 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeee",
		 "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd-"},
	};

	for (size_t i = 0; i < ABX_N_ELEMENTS(cases); i++) {
		abx_autofree char *key = abx_project_key(cases[i].path);
		size_t n = strlen(cases[i].start);

		ck_assert_msg(strncmp(key, cases[i].start, n) == 0, "%s", key);
		ck_assert_uint_eq(strspn(key + n, "0123456789abcdef"), 16);
		ck_assert_uint_eq(strlen(key), n + 16);
	}
}
END_TEST

START_TEST(state_names)
{
	for (int i = ABX_BOX_UNKNOWN; i <= ABX_BOX_GONE; i++)
		ck_assert_int_eq(abx_box_state_of_name(abx_box_state_name((enum abx_box_state)i)),
				 i);
	ck_assert_int_eq(abx_box_state_of_name("sideways"), ABX_BOX_UNKNOWN);
	ck_assert_int_eq(abx_box_state_of_name(NULL), ABX_BOX_UNKNOWN);
	ck_assert_int_eq(abx_box_state_of_sandbox(ABX_STATE_ARCHIVED), ABX_BOX_STOPPED);
	ck_assert_int_eq(abx_box_state_of_sandbox(4711), ABX_BOX_UNKNOWN);
}
END_TEST

static int reserve_one(unsigned int i)
{
	struct abx_err err = ABX_ERR_INIT;
	struct abx_home h = ABX_HOME_INIT;
	struct abx_box b = {0};
	const struct abx_reserve in = {
		.project_path = i % 2 ? "/odd" : "/even", .workspace = "/w", .provider = "local"};
	int r = abx_home_open(&h, &err);

	db = NULL;
	if (r == 0)
		r = abx_db_open(&h, &db, &err);
	if (r == 0)
		r = abx_boxes_reserve(db, &in, &b, &err);
	if (r < 0)
		(void)fprintf(stderr, "# %u: %s\n", i, err.text);
	abx_db_close(db);
	return r;
}

START_TEST(many_reserve_at_once)
{
	bool seen[2][MANY / 2 + 1] = {{false}};
	struct abx_box_list l = {0};

	(void)setenv("AGENTBOX_HOME", unit_path("fresh"), 1);
	ck_assert_uint_eq(unit_together(MANY, reserve_one), MANY);
	abx_db_close(db);
	abx_home_release(unit_home());
	unit_ok(abx_home_open(unit_home(), &unit_err));
	unit_ok(abx_db_open(unit_home(), &db, &unit_err));
	unit_ok(abx_boxes_list(db, NULL, &l, &unit_err));
	ck_assert_uint_eq(l.len, MANY);
	for (size_t i = 0; i < l.len; i++) {
		int project = strncmp(l.items[i].project, "odd-", 4) == 0;

		ck_assert_uint_ge(l.items[i].index, 1);
		ck_assert_uint_le(l.items[i].index, MANY / 2);
		ck_assert(!seen[project][l.items[i].index]);
		seen[project][l.items[i].index] = true;
		for (size_t j = 0; j < i; j++) {
			ck_assert_str_ne(l.items[i].name, l.items[j].name);
			ck_assert_str_ne(l.items[i].id, l.items[j].id);
			ck_assert_str_ne(l.items[i].attempt, l.items[j].attempt);
		}
	}
	abx_box_list_release(&l);
}
END_TEST

static void add_word(struct abx_strv *words, const char *word, size_t len)
{
	abx_autofree char *copy = abx_xstrndup(word, len);

	for (size_t i = 0; i < words->len; i++)
		if (strcmp(words->items[i], copy) == 0)
			return;
	abx_strv_add(words, copy);
}

static void take_name(const char *first, const char *second, int64_t index)
{
	abx_autofree char *name = abx_xasprintf("%s-%s", first, second);
	char id[17];

	abx_box_new_id(id);
	unit_ok(abx_db_exec(db, &unit_err,
			    "INSERT INTO boxes (id, name, idx, project, workspace, provider,"
			    " attempt, state, created_at) VALUES (?, ?, ?, 'k', '', '', '', '', 0)",
			    "ssi", id, name, index));
}

/* Every name of two words is taken: a number makes more. */
START_TEST(names_when_crowded)
{
	struct abx_strv firsts = {0}, seconds = {0};
	char name[ABX_NAME_BYTES];
	int64_t index = 0;

	for (int i = 0; i < 5000; i++) {
		const char *dash;

		abx_name_make(0, name);
		dash = strchr(name, '-');
		add_word(&firsts, name, (size_t)(dash - name));
		add_word(&seconds, dash + 1, strlen(dash + 1));
	}
	ck_assert_uint_ge(firsts.len * seconds.len, 4096);
	unit_ok(abx_db_begin(db, &unit_err));
	unit_ok(abx_db_exec(db, &unit_err, "INSERT INTO projects VALUES ('k', '/k', 0)", ""));
	for (size_t i = 0; i < firsts.len; i++)
		for (size_t j = 0; j < seconds.len; j++)
			take_name(firsts.items[i], seconds.items[j], ++index);
	unit_ok(abx_db_commit(db, &unit_err));
	for (int i = 0; i < 20; i++) {
		struct abx_box b;

		unit_ok(reserve_in("/p", NULL, &b, &unit_err));
		ck_assert_ptr_nonnull(strpbrk(b.name, "0123456789"));
		ck_assert_int_eq(abx_check_box_name(b.name, NULL), 0);
		abx_box_release(&b);
	}
	abx_strv_release(&firsts);
	abx_strv_release(&seconds);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("boxes");
	TCase *tc = tcase_create("boxes");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, reserved_record);
	tcase_add_test(tc, lowest_free_index_of_the_project);
	tcase_add_test(tc, taken_name_says_by_whom);
	tcase_add_test(tc, unusable_names);
	tcase_add_test(tc, name_that_is_an_id);
	tcase_add_test(tc, ids_that_are_none);
	tcase_add_test(tc, id_twice);
	tcase_add_test(tc, new_ids_are_never_numbers);
	tcase_add_test(tc, update_and_load);
	tcase_add_test(tc, what_a_provider_says);
	tcase_add_test(tc, delete_takes_all_of_it);
	tcase_add_test(tc, list_of_project_and_install);
	tcase_add_test(tc, project_keys);
	tcase_add_test(tc, state_names);
	tcase_add_test(tc, many_reserve_at_once);
	tcase_add_test(tc, names_when_crowded);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
