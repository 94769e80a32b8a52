/* SPDX-License-Identifier: MIT */
/* The least that a program linked to SQLite can do: the floor of `agentbox version`. */
#include <sqlite3.h>
#include <stdio.h>

int main(void)
{
	return puts(sqlite3_libversion()) < 0;
}
