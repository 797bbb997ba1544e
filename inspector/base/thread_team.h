// SPDX-License-Identifier: Apache-2.0
// run_team: threads that work on one thing together and may wait for each other, as those of a parallel_for may not.
// They are the pool's (thread_pool.h), so that a library with a thread runtime of its own can do without it.
#pragma once

#include <functional>

namespace parallax {

// Calls body(index) once for each index from 0 to threads - 1, index 0 on the caller; returns when all have returned.
// Calls that wait for each other run at the same time; one that no thread has begun when another call returns is made
// by that one's thread. The pool grows where too few of its threads are idle: others' loops are not waited for. The
// body must not throw.
void run_team(int threads, const std::function<void(int index)>& body);

}  // namespace parallax
