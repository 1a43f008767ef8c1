// Package client makes the settings for the clients of one AWS account. All AWS halves of the seams
// use it.
//
// It promises four things.
//
//   - FromEnv makes the settings of every client from the environment that Lambda gives a function.
//     It does without the SDK's config package. That package reads profiles, single sign-on and
//     instance roles that a function never has, and adds about two megabytes to its binary.
//   - The SDK retries nothing. internal/seam/backoff is lull's one layer of retries; a second one
//     underneath multiplies the tries and hides the outcome that a lease depends on.
//   - A request ends after its limit, and says so in an error that may be retried.
//   - Errors are distinguished by type and code, never by their text. Emulators and protocols spell
//     codes differently; Code brings them into one spelling.
package client
