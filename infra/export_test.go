package infra

// WriteProgram writes a file that looks like an arm64 program.
var WriteProgram = writeProgram
