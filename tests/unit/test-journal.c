/* SPDX-License-Identifier: MIT */
/* The journal and the resources of a box. */
#include "core/state/journal.h"

#include "core/util/redact.h"
#include "tests/unit/unit.h"

static struct abx_db *db;
static struct abx_box box;

static void setup(void)
{
	const struct abx_reserve in = {.project_path = "/p", .workspace = "/p", .provider = "mock"};

	unit_home_setup();
	unit_ok(abx_db_open(unit_home(), &db, &unit_err));
	memset(&box, 0, sizeof(box));
	unit_ok(abx_boxes_reserve(db, &in, &box, &unit_err));
}

static void teardown(void)
{
	abx_box_release(&box);
	abx_db_close(db);
	unit_dir_teardown();
}

static void note(const char *box_id, const char *kind, const char *name, const char *id,
		 uint32_t phase)
{
	const struct abx_resource res = {ABX_INIT(struct abx_resource), .kind = kind, .id = id,
					 .name = name};

	unit_ok(abx_resources_note(db, "mock", box_id, &res, phase, &unit_err));
}

static struct abx_resource_rows list(const char *provider, const char *box_id)
{
	struct abx_resource_rows rows = {0};

	unit_ok(abx_resources_list(db, provider, box_id, &rows, &unit_err));
	return rows;
}

START_TEST(rows_in_order_and_redacted)
{
	struct abx_journal_rows rows = {0};

	abx_redact_add("hunter2-token");
	unit_ok(abx_journal_add(db, box.id, "create", "provision", ABX_JOURNAL_INTENT, NULL,
				&unit_err));
	unit_ok(abx_journal_add(db, box.id, "create", "provision", ABX_JOURNAL_FAILED,
				"no: hunter2-token", &unit_err));
	unit_ok(abx_journal_list(db, box.id, &rows, &unit_err));
	ck_assert_uint_eq(rows.len, 3);
	ck_assert_int_lt(rows.items[0].seq, rows.items[1].seq);
	ck_assert_int_lt(rows.items[1].seq, rows.items[2].seq);
	ck_assert_int_eq(rows.items[1].phase, ABX_JOURNAL_INTENT);
	ck_assert_ptr_null(rows.items[1].detail);
	ck_assert_int_eq(rows.items[2].phase, ABX_JOURNAL_FAILED);
	ck_assert_str_eq(rows.items[2].detail, "no: ***");
	ck_assert_int_gt(rows.items[2].at_ms, INT64_C(1600000000000));
	abx_journal_rows_release(&rows);
}
END_TEST

START_TEST(row_of_no_box)
{
	struct abx_err err = ABX_ERR_INIT;

	ck_assert_int_lt(abx_journal_add(db, "0000000000000000", "create", "x", ABX_JOURNAL_DONE,
					 NULL, &err),
			 0);
	unit_has(err.text, "0000000000000000");
}
END_TEST

START_TEST(intent_exists_gone)
{
	struct abx_resource_rows rows;

	note(box.id, "firewall", "fw-1", NULL, ABX_PHASE_INTENT);
	note(box.id, "firewall", "fw-1", NULL, ABX_PHASE_INTENT);
	rows = list("mock", box.id);
	ck_assert_uint_eq(rows.len, 1);
	ck_assert_uint_eq(rows.items[0].phase, ABX_PHASE_INTENT);
	ck_assert_ptr_null(rows.items[0].id);
	abx_resource_rows_release(&rows);
	note(box.id, "firewall", "fw-1", "4711", ABX_PHASE_EXISTS);
	rows = list("mock", box.id);
	ck_assert_uint_eq(rows.len, 1);
	ck_assert_uint_eq(rows.items[0].phase, ABX_PHASE_EXISTS);
	ck_assert_str_eq(rows.items[0].id, "4711");
	ck_assert_str_eq(rows.items[0].name, "fw-1");
	abx_resource_rows_release(&rows);
	note(box.id, "firewall", NULL, "4711", ABX_PHASE_GONE);
	rows = list(NULL, NULL);
	ck_assert_uint_eq(rows.len, 0);
	abx_resource_rows_release(&rows);
}
END_TEST

START_TEST(different_ones_stay_apart)
{
	struct abx_resource_rows rows;

	note(box.id, "key", "a", "1", ABX_PHASE_EXISTS);
	note(box.id, "key", "a", "2", ABX_PHASE_EXISTS);
	note(box.id, "volume", "a", "1", ABX_PHASE_EXISTS);
	note(NULL, "key", "a", "1", ABX_PHASE_EXISTS);
	rows = list(NULL, NULL);
	ck_assert_uint_eq(rows.len, 4);
	abx_resource_rows_release(&rows);
	rows = list("mock", box.id);
	ck_assert_uint_eq(rows.len, 3);
	abx_resource_rows_release(&rows);
	rows = list("other", NULL);
	ck_assert_uint_eq(rows.len, 0);
	abx_resource_rows_release(&rows);
	note(box.id, "key", "a", "2", ABX_PHASE_GONE);
	rows = list("mock", box.id);
	ck_assert_uint_eq(rows.len, 2);
	ck_assert_str_eq(rows.items[0].id, "1");
	abx_resource_rows_release(&rows);
}
END_TEST

/* Deleted by name while its id never came back. */
START_TEST(gone_before_it_had_an_id)
{
	struct abx_resource_rows rows;

	note(box.id, "key", "a", NULL, ABX_PHASE_INTENT);
	note(box.id, "key", "a", NULL, ABX_PHASE_GONE);
	note(box.id, "key", "b", "9", ABX_PHASE_EXISTS);
	note(box.id, "key", "b", NULL, ABX_PHASE_GONE);
	rows = list(NULL, NULL);
	ck_assert_uint_eq(rows.len, 0);
	abx_resource_rows_release(&rows);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("journal");
	TCase *tc = tcase_create("journal");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, rows_in_order_and_redacted);
	tcase_add_test(tc, row_of_no_box);
	tcase_add_test(tc, intent_exists_gone);
	tcase_add_test(tc, different_ones_stay_apart);
	tcase_add_test(tc, gone_before_it_had_an_id);
	suite_add_tcase(s, tc);
	return s;
}

UNIT_MAIN(suite)
