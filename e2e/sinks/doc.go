// Package sinks runs `lull dev` before the real server of each kind of sink: see e2e/run.sh sinks.
package sinks
