package infra

// WriteProgram writes a file that passes as an arm64 program.
var WriteProgram = writeProgram
