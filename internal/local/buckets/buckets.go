// SPDX-License-Identifier: Apache-2.0

// Package buckets reads files of a local folder as if they were objects of S3: the object
// s3://bucket/key is the file FOLDER/bucket/key.
//
// The package reads only regular files inside the folder. Neither a key nor a symbolic link can
// name a file outside the folder.
package buckets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/pipeline/payload"
)

// Folder is a folder with a subfolder for each bucket. A Folder is safe for concurrent use.
type Folder struct{ root *os.Root }

// Open opens a folder, and creates the folder if it does not exist. Close the Folder after use.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make folder of buckets: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder of buckets: %w", err)
	}
	return &Folder{root}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Load reads an object of at most [payload.MaxObject] bytes. An *event.Invalid error is permanent.
// Any other error may be temporary: see [payload.Objects].
func (f *Folder) Load(ctx context.Context, bucket, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, err := nameOf(bucket, key)
	if err != nil {
		return nil, err
	}
	body, err := f.read(name)
	var number syscall.Errno
	switch {
	case err == nil && len(body) > payload.MaxObject:
		return nil, payload.TooLarge()
	case err == nil:
		return body, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, payload.Missing()
	case errors.Is(err, errNoObject), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP),
		!errors.As(err, &number): // os.Root's error for a path that leaves the folder
		return nil, payload.Refused(
			"the folder of buckets has no object there: it must be a regular file inside the folder",
		)
	}
	return nil, fmt.Errorf("load from the folder of buckets: %w", err)
}

// Open opens a file at the byte from, if the file still has the given entity tag: see
// [objects.Open].
func (f *Folder) Open(ctx context.Context, bucket, key, etag string, from int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, err := nameOf(bucket, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", objects.ErrRefused, err)
	}
	info, err := f.root.Stat(name) // check this before opening: opening a pipe would wait for a writer
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, objects.ErrGone
	case err != nil:
		return nil, fmt.Errorf("open in the folder of buckets: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is %w", objects.ErrRefused, errNoObject)
	case etag != "" && etag != stampOf(info).tag():
		return nil, objects.ErrReplaced
	}
	file, err := f.root.Open(name)
	if err == nil {
		if _, err = file.Seek(from, io.SeekStart); err == nil {
			return file, nil
		}
		_ = file.Close() // an error does not matter, because the file was only read
	}
	return nil, fmt.Errorf("open in the folder of buckets: %w", err)
}

var errNoObject = errors.New("not a regular file")

// nameOf returns the name of an object's file. nameOf refuses a key that a folder cannot
// distinguish from another key: for example, a/b and a//b are different keys in S3.
func nameOf(bucket, key string) (string, error) {
	name, err := filepath.Localize(bucket + "/" + key)
	if err != nil || path.Base(bucket) != bucket || bucket == "." {
		return "", payload.Refused(
			"a folder cannot contain this bucket and key: a key must not have an empty part between two slashes, " +
				"and no part may be . or ..",
		)
	}
	return name, nil
}

func (f *Folder) read(name string) ([]byte, error) {
	info, err := f.root.Stat(name) // check this before opening: opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoObject
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // an error does not matter, because the file was only read
	return io.ReadAll(io.LimitReader(file, payload.MaxObject+1))
}

var (
	_ payload.Objects = (*Folder)(nil).Load
	_ objects.Open    = (*Folder)(nil).Open
)
