// Package price turns what a stack used into dollars, by list prices that stand in one file with
// their date.
//
// It promises no invoice: free tiers, discounts and data transfer are left out. The bill of a usage
// is of requests and time, for every contender of the benchmark alike; package cost adds what else
// a stack costs. What is counted is counted as AWS bills it: requests of up to ten messages and 64
// KB, write units of 1 KB, executions in steps of 100 ms and 64 MB.
package price
