// Package cost estimates the whole monthly bill of a stack, for its own settings and any load:
// requests and time, logs, metrics, alarms, polls, storage, keys and secrets.
//
// Nothing in it is a table of measured figures that could grow old. What the functions ask of AWS
// is counted while package sim runs them with the settings, in virtual time. Their log lines and
// metrics are those that the deployed functions would write. The same settings and load give the
// same estimate. The prices are package price's.
//
// What AWS decides is given as a floor and a ceiling: how many pollers receive from a queue, and
// how many messages each of their requests brings.
package cost
