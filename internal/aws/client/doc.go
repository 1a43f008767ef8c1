// SPDX-License-Identifier: Apache-2.0

// Package client makes the settings for all clients of AWS services. All packages below
// internal/aws use these settings.
//
// The package follows four rules.
//
//   - FromEnv makes the settings of every client from the environment that Lambda gives a function.
//     The package does not use the SDK's config package. That package reads profiles, single
//     sign-on and instance roles, which a function never has, and adds about two megabytes to the
//     binary.
//   - The SDK retries nothing. internal/seam/backoff is the only layer of retries in lull. A second
//     layer below it would multiply the tries, and hide outcomes on which a lease depends.
//   - A request has a time-out. The error of a time-out may be retried.
//   - Errors are distinguished by type and code, never by their text. Emulators and protocols spell
//     codes differently; Code converts them into one spelling.
package client
