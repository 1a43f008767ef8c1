// SPDX-License-Identifier: Apache-2.0

// Package price computes the cost of a stack's usage in dollars. The file list.go has the list
// prices and their date.
//
// The result is not an invoice: free tiers, discounts and data transfer are left out. The bill of a
// usage covers requests and time, for every contender of the benchmark in the same way. Package
// cost adds the other costs of a stack. Usage is counted as AWS bills it: requests of up to ten
// messages and 64 KB, write units of 1 KB, executions in steps of 100 ms and 64 MB.
package price
