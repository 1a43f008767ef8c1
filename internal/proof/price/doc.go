// Package price turns what a stack used into dollars, by list prices that stand in one file with
// their date.
//
// It promises no invoice: free tiers, discounts, storage, logs, metrics, alarms, keys and data
// transfer are left out, for every contender alike. What it does count it counts as AWS bills it:
// requests of up to ten messages and 64 KB, write units of 1 KB, executions in steps of 100 ms and
// 64 MB.
package price
