package infra

// WriteProgram writes what passes for an arm64 program.
var WriteProgram = writeProgram
