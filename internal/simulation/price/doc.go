// Package price computes the cost of a stack's usage in dollars. One file has the list prices with
// their date.
//
// It promises no invoice: free tiers, discounts and data transfer are left out. The bill of a usage
// is of requests and time, for every contender of the benchmark alike; package cost adds what else
// a stack costs. Usage is counted as AWS bills it: requests of up to ten messages and 64 KB, write
// units of 1 KB, executions in steps of 100 ms and 64 MB.
package price
