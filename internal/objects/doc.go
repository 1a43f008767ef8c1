// Package objects reads objects that hold many documents.
package objects
