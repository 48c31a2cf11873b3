/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * argp, which musl does not have: what files of elfutils need that become no part of libelf.
 */
#include <stdio.h>

typedef int error_t;

struct argp_state {
	const char *name;
};

struct argp_option {
	const char *name;
	int key;
	const char *arg;
	int flags;
	const char *doc;
	int group;
};

struct argp {
	const struct argp_option *options;
	error_t (*parser)(int key, char *arg, struct argp_state *state);
	const char *args_doc;
	const char *doc;
	const void *children;
	void *filter;
	const char *domain;
};

void argp_help(const struct argp *argp, FILE *to, unsigned int flags, char *name);

#define OPTION_ARG_OPTIONAL 1
#define ARGP_HELP_SEE 4
#define ARGP_ERR_UNKNOWN 7
