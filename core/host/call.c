/* SPDX-License-Identifier: MIT */
/* One operation under way. */
#include "core/host/call.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "core/util/clock.h"
#include "core/util/mem.h"

int abx_call_new(int64_t deadline_ms, struct abx_call **ret, struct abx_err *err)
{
	static const struct abx_err none = ABX_ERR_INIT;
	struct abx_call *call = abx_xcalloc(1, sizeof(*call));

	call->cancel_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (call->cancel_event < 0) {
		free(call);
		return abx_err_errno(err, errno, "eventfd");
	}
	atomic_init(&call->refs, 1);
	call->deadline_ms = deadline_ms;
	call->fds[0] = call->fds[1] = -1;
	call->exit.struct_size = (uint32_t)sizeof(call->exit);
	call->failure = none;
	call->broken = none;
	(void)pthread_mutex_init(&call->lock, NULL);
	*ret = call;
	return 0;
}

void abx_call_ref(struct abx_call *call)
{
	atomic_fetch_add(&call->refs, 1);
}

static void arg_release(struct abx_arg *a)
{
	free(a->record);
	free(a->memory);
}

void abx_result_release(struct abx_result *r)
{
	free(r->record);
	free(r->memory);
	memset(r, 0, sizeof(*r));
}

void abx_call_unref(struct abx_call *call)
{
	if (atomic_fetch_sub(&call->refs, 1) != 1)
		return;
	for (size_t i = 0; i < call->n_results; i++)
		abx_result_release(&call->results[i]);
	free(call->results);
	arg_release(&call->sandbox);
	arg_release(&call->request);
	arg_release(&call->plain);
	abx_cleanup_close(&call->fds[0]);
	abx_cleanup_close(&call->fds[1]);
	abx_cleanup_close(&call->cancel_event);
	(void)pthread_mutex_destroy(&call->lock);
	free(call);
}

static int set_arg(struct abx_arg *a, const struct abx_record_type *type, const void *src,
		   struct abx_err *err)
{
	void *record = abx_xcalloc(1, type->size);
	int r = abx_record_copy(type, src, record, &a->memory, err);

	if (r < 0) {
		free(record);
		/* It is our own request that makes no sense. */
		if (err)
			err->code = ABX_EINVAL;
		return ABX_EINVAL;
	}
	a->record = record;
	return 0;
}

int abx_call_set_sandbox(struct abx_call *call, const struct abx_sandbox *s, struct abx_err *err)
{
	return set_arg(&call->sandbox, &abx_record_sandbox_ref, s, err);
}

int abx_call_set_request(struct abx_call *call, const struct abx_record_type *type,
			 const void *request, struct abx_err *err)
{
	return set_arg(&call->request, type, request, err);
}

int abx_call_set_plain(struct abx_call *call, const struct abx_plain_args *plain,
		       struct abx_err *err)
{
	return set_arg(&call->plain, &abx_record_plain, plain, err);
}

void abx_call_cancel(struct abx_call *call)
{
	const uint64_t one = 1;

	(void)!write(call->cancel_event, &one, sizeof(one));
}

bool abx_call_is_cancelled(const struct abx_call *call)
{
	struct pollfd p = {call->cancel_event, POLLIN, 0};

	return poll(&p, 1, 0) > 0;
}

int64_t abx_call_time_left_ms(const struct abx_call *call)
{
	int64_t left;

	if (call->deadline_ms == INT64_MAX)
		return INT64_MAX;
	left = call->deadline_ms - abx_now_ms();
	return left > 0 ? left : 0;
}

bool abx_call_abandon(struct abx_call *call)
{
	bool done;

	(void)pthread_mutex_lock(&call->lock);
	done = call->done;
	if (!done)
		call->abandoned = true;
	(void)pthread_mutex_unlock(&call->lock);
	return done;
}

bool abx_call_take_last(struct abx_call *call, const struct abx_record_type *type,
			struct abx_result *ret)
{
	for (size_t i = call->n_results; i-- > 0;) {
		if (call->results[i].type != type)
			continue;
		*ret = call->results[i];
		memset(&call->results[i], 0, sizeof(call->results[i]));
		return true;
	}
	return false;
}
