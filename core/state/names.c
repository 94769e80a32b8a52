/* SPDX-License-Identifier: MIT */
/* Names for boxes that were given none. */
#include "core/state/names.h"

#include <stdio.h>

#include "abxsdk/base.h"
#include "core/util/rand.h"

#define PLAIN_ATTEMPTS 8

static const char *const adjectives[] = {
	"amber",  "autumn", "bold",   "brave",	"bright",  "brisk",  "calm",   "clear",
	"clever", "cobalt", "cosmic", "crisp",	"curious", "daring", "early",  "eager",
	"fair",	  "fast",   "fine",   "fresh",	"gentle",  "glad",   "golden", "grand",
	"green",  "happy",  "hidden", "honest", "humble",  "icy",    "jolly",  "keen",
	"kind",	  "light",  "lively", "loyal",	"lucky",   "mellow", "merry",  "mild",
	"misty",  "modest", "neat",   "noble",	"patient", "plucky", "polite", "proud",
	"quick",  "quiet",  "rapid",  "rustic", "sharp",   "shiny",  "silent", "silver",
	"smooth", "snowy",  "solid",  "steady", "sunny",   "swift",  "tidy",   "wise",
};

static const char *const nouns[] = {
	"acorn",   "anchor",  "badger",	 "beacon", "birch", "bison",  "breeze", "brook",
	"canyon",  "cedar",   "cloud",	 "comet",  "coral", "crane",  "delta",	"dune",
	"eagle",   "ember",   "falcon",	 "fern",   "finch", "fjord",  "forest", "fox",
	"garden",  "glacier", "harbor",	 "hazel",  "heron", "island", "ivy",	"jasper",
	"juniper", "lagoon",  "lake",	 "lark",   "lynx",  "maple",  "meadow", "moon",
	"moss",	   "oak",     "ocean",	 "orchid", "otter", "owl",    "pebble", "pine",
	"prairie", "quartz",  "raven",	 "reef",   "ridge", "river",  "robin",	"sparrow",
	"spruce",  "summit",  "thistle", "tiger",  "tulip", "valley", "willow", "wren",
};

static const char *pick(const char *const *words, size_t n)
{
	return words[abx_rand_below((uint32_t)n)];
}

void abx_name_make(unsigned int attempt, char text[ABX_NAME_BYTES])
{
	const char *first = pick(adjectives, ABX_N_ELEMENTS(adjectives));
	const char *second = pick(nouns, ABX_N_ELEMENTS(nouns));
	uint32_t room = 100;

	if (attempt < PLAIN_ATTEMPTS) {
		(void)snprintf(text, ABX_NAME_BYTES, "%s-%s", first, second);
		return;
	}
	for (unsigned int i = PLAIN_ATTEMPTS; i < attempt && room < 100000000; i++)
		room *= 10;
	(void)snprintf(text, ABX_NAME_BYTES, "%s-%s-%u", first, second, 2 + abx_rand_below(room));
}
