/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The types that the classifier shares with the Rust side. Plain C without
 * kernel headers except <linux/types.h>; bindgen generates the Rust half.
 */
#ifndef EMUD_H
#define EMUD_H

/* Incremented when a struct of abi/ changes: show, set and detach reject a
 * classifier that a different emud version loaded, instead of misreading it. */
#define EMUD_ABI 19

#include "abi/general.h"
#include "abi/hold.h"
#include "abi/link.h"
#include "abi/queueing.h"
#include "abi/rules.h"
#include "abi/saved.h"
#include "abi/service.h"
#include "abi/state.h"
#include "abi/time.h"

#endif
