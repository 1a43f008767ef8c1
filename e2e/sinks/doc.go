// SPDX-License-Identifier: Apache-2.0

// Package sinks tests `lull dev` with the real server of each kind of sink. See e2e/run.sh sinks.
package sinks
