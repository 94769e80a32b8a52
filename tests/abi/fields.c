/* SPDX-License-Identifier: MIT */
/* Print offset and size of every member, and every number, of the installed header. */
#include <agentbox/cloud_backend.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct field {
	const char *owner, *name; /* name NULL: the struct itself */
	size_t offset, size;
};

#define S(type) {#type, NULL, 0, sizeof(struct type)},
#define F(type, member) \
	{#type, #member, offsetof(struct type, member), sizeof(((struct type *)0)->member)},
#define C(constant)
static const struct field fields[] = {
#include "tests/abi/fields.h"
};
#undef S
#undef F
#undef C

static const struct {
	const char *name;
	int64_t value;
} constants[] = {
#define S(type)
#define F(type, member)
#define C(constant) {#constant, (int64_t)(constant)},
#include "tests/abi/fields.h"
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

/* Each member begins where the one before it ends, and the last one ends the struct. */
static int check_gaps(void)
{
	size_t end = 0;
	int bad = 0;

	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &fields[i];

		if (!f->name) {
			end = 0;
			continue;
		}
		if (f->offset != end) {
			(void)fprintf(stderr, "%s.%s: something before it is not listed\n",
				      f->owner, f->name);
			bad = 1;
		}
		end = f->offset + f->size;
		if ((i + 1 == N_FIELDS || !fields[i + 1].name)) {
			const struct field *s = f;

			while (s->name)
				s--;
			if (end != s->size) {
				(void)fprintf(stderr, "%s: something at its end is not listed\n",
					      s->owner);
				bad = 1;
			}
		}
	}
	return bad;
}

int main(void)
{
	for (size_t i = 0; i < N_FIELDS; i++) {
		const struct field *f = &fields[i];

		if (f->name)
			(void)printf("%s.%s %zu %zu\n", f->owner, f->name, f->offset, f->size);
		else
			(void)printf("%s %zu\n", f->owner, f->size);
	}
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		(void)printf("%s %" PRId64 "\n", constants[i].name, constants[i].value);
	return check_gaps();
}
